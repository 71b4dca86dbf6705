"""The issuers of a tenant. Only `find` reads across tenants, by their slugs."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import ARRAY, Text, bindparam, column, delete, func, or_, select, true, update
from sqlalchemy import insert as insert_into
from sqlalchemy.dialects.postgresql import JSONB

from gateway.domain.identifiers import IssuerId, TenantId
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.issuers import IntrospectionClient, Issuer, SignInClient, TenantIssuers
from gateway.errors import NotFound
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db
from gateway.store.identity.tables import issuers, keys
from gateway.store.pagination import select_page
from gateway.store.secrets import tenant_key
from gateway.store.tables import data_keys

_COLUMNS = [name for name in Issuer.__slots__ if name != "access_scopes"]
_WANTED = func.unnest(bindparam("wanted", type_=ARRAY(Text))).table_valued("slug").render_derived("wanted")
_EACH = func.issuers_by_slug(_WANTED.c.slug).table_valued("slug", "tenant_id", column("issuer", JSONB)).lateral()
_FIND = select(_EACH.c.slug, _EACH.c.tenant_id, _EACH.c.issuer).select_from(_WANTED).join(_EACH, true())


async def find(db: Db, slugs: Collection[str]) -> Mapping[str, TenantIssuers]:
    """The enabled issuers of the tenants with these slugs; bypasses row-level security."""
    found: dict[tuple[str, str], list[Issuer]] = defaultdict(list)
    for row in (await db.execute(_FIND, {"wanted": list(slugs)})).mappings():
        found[row["slug"], row["tenant_id"]].append(msgspec.convert(row["issuer"], Issuer))
    return {slug: TenantIssuers(tenant=TenantId(tenant), issuers=tuple(each)) for (slug, tenant), each in found.items()}


async def insert(tenant: TenantId, db: Db, issuer: Issuer) -> None:
    """Add an issuer to its tenant."""
    await db.execute(insert_into(issuers).values(tenant_id=tenant, id=issuer.id, **_row_values(issuer)))


async def get(tenant: TenantId, db: Db, name_or_id: str, *, locked: bool = False) -> Issuer | None:
    """The issuer with this id or name; an id takes precedence. `locked` holds the row until the transaction ends."""
    is_named = or_(issuers.c.id == name_or_id, issuers.c.name == name_or_id)
    query = select(issuers).where(issuers.c.tenant_id == tenant, is_named)
    query = query.order_by((issuers.c.id == name_or_id).desc()).limit(1)
    row = (await db.execute(query.with_for_update(key_share=True) if locked else query)).mappings().one_or_none()
    return _issuer(row) if row else None


async def find_url(tenant: TenantId, db: Db, url: str) -> Issuer | None:
    """The tenant's issuer with this issuer identifier."""
    query = select(issuers).where(issuers.c.tenant_id == tenant, issuers.c.url == url)
    row = (await db.execute(query)).mappings().one_or_none()
    return _issuer(row) if row else None


async def page(tenant: TenantId, db: Db, *, after: str | None, limit: int, order: Order = KEYED) -> Sequence[Issuer]:
    """One page of the tenant's issuers, by default sorted by name."""
    own = select(issuers).where(issuers.c.tenant_id == tenant)
    query = select_page(own, issuers.c, "name", after=after, limit=limit, order=order)
    return [_issuer(row) for row in (await db.execute(query)).mappings()]


async def count(tenant: TenantId, db: Db) -> int:
    """Number of the tenant's issuers."""
    counted = select(func.count()).select_from(issuers).where(issuers.c.tenant_id == tenant)
    return int((await db.execute(counted)).scalar_one())


async def save(tenant: TenantId, db: Db, issuer: Issuer) -> None:
    """Store an issuer under the version that it contains, and raise the versions of its people to end their sessions.

    Raises:
        NotFound: the tenant has no such issuer.
    """
    own = (issuers.c.tenant_id == tenant, issuers.c.id == issuer.id)
    changed = update(issuers).where(*own).values(**_row_values(issuer)).returning(issuers.c.id)
    if (await db.execute(changed)).one_or_none() is None:
        raise NotFound("There is no such issuer.")
    people = (keys.c.tenant_id == tenant, keys.c.issuer_id == issuer.id)
    await db.execute(update(keys).where(*people).values(version=keys.c.version + 1))  # guard: issuer-change-ends


async def remove(tenant: TenantId, db: Db, issuer: IssuerId) -> bool:
    """Delete an issuer with its people; True if it existed."""
    deleted = delete(issuers).where(issuers.c.tenant_id == tenant, issuers.c.id == issuer).returning(issuers.c.id)
    return (await db.execute(deleted)).one_or_none() is not None


async def save_secret(tenant: TenantId, db: Db, sealer: EnvelopeCipher, issuer: Issuer, *, secret: str | None) -> None:
    """Encrypt the secret of the issuer's client, bound to the client and its token endpoint; None deletes it."""
    key_id = sealed = None
    if secret is not None:
        key_id, wrapped = await tenant_key(tenant, db, sealer)
        sealed = sealer.seal(tenant, wrapped, secret.encode(), *_bound(issuer))
    own = (issuers.c.tenant_id == tenant, issuers.c.id == issuer.id)
    await db.execute(update(issuers).where(*own).values(sign_in_secret=sealed, data_key_id=key_id))


async def open_secret(tenant: TenantId, db: Db, sealer: EnvelopeCipher, issuer: Issuer) -> str | None:
    """The secret of the issuer's client; None if there is none.

    Raises:
        SecretUnreadable: it was encrypted for another client or token endpoint, or no configured key decrypts it.
    """
    joined = (data_keys.c.tenant_id == issuers.c.tenant_id) & (data_keys.c.id == issuers.c.data_key_id)
    query = select(issuers.c.sign_in_secret, data_keys.c.wrapped).join_from(issuers, data_keys, joined)
    row = (await db.execute(query.where(issuers.c.tenant_id == tenant, issuers.c.id == issuer.id))).one_or_none()
    return None if row is None else sealer.open(tenant, row[1], row[0], *_bound(issuer)).decode()


def sealed_context(row: Mapping[Any, Any], _: str) -> tuple[str, ...]:
    """Callback for key rotation: the encryption context of a stored row."""
    return _bound(_issuer(row))


def _bound(issuer: Issuer) -> tuple[str, ...]:
    client = issuer.sign_in
    more = () if client is None else (bound_id(client), client.token_url)  # guard: sign-in-secret-sealed
    return ("sign-in client", issuer.id, *more)


def bound_id(client: SignInClient | IntrospectionClient) -> str:
    """The client's id and its reference, to which its encrypted secret is bound; an id contains no line end."""
    reference = client.client_secret_reference
    if reference is None:
        return client.client_id
    return f"{client.client_id}\n{reference}"  # guard: client-reference-sealed


def _row_values(issuer: Issuer) -> dict[str, Any]:
    return {
        **{name: getattr(issuer, name) for name in _COLUMNS if name != "id"},
        "sign_in": None if issuer.sign_in is None else msgspec.to_builtins(issuer.sign_in),
        "introspection": None if issuer.introspection is None else msgspec.to_builtins(issuer.introspection),
        "audiences": list(issuer.audiences),
        "algorithms": list(issuer.algorithms),
        "rules": msgspec.to_builtins(issuer.rules),
    }


def _issuer(row: Mapping[Any, Any]) -> Issuer:
    columns = {name: row[name] for name in _COLUMNS}
    return msgspec.convert(columns, Issuer)
