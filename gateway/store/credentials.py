"""Credentials that handlers and watches refer to by name: stored encrypted, decrypted for upstream requests.

The encrypted value is bound to the credential's id, name, version, location, field, origins and delegation. If one of
these is changed in the database, decryption fails, so the secret is not sent.
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy import ColumnElement, RowMapping, Select, and_, delete, func, or_, select, update
from sqlalchemy import insert as insert_into

from gateway.domain.credentials import CredentialLocation, Delegation, StoredCredential
from gateway.domain.http.requests import Credential, NamedCredential
from gateway.domain.identifiers import CredentialId, TenantId
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.secret_references import SecretReference
from gateway.errors import NotFound
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db
from gateway.store.pagination import select_page
from gateway.store.secrets import tenant_key
from gateway.store.tables import credentials, data_keys, secrets, sources

_DELEGATED, _REFERENCE = "delegation", "reference"  # not valid origins, so the context is unambiguous
_PUBLIC_COLUMNS = (
    credentials.c.id,
    credentials.c.name,
    credentials.c.place,
    credentials.c.field,
    credentials.c.origins,
    credentials.c.delegation,
    credentials.c.reference,
    credentials.c.version,
    credentials.c.created_at,
    credentials.c.updated_at,
)


async def insert(
    tenant: TenantId, db: Db, sealer: EnvelopeCipher, credential: StoredCredential, secret: Credential
) -> None:
    """Add a credential.

    Raises:
        NameTaken: the tenant already has a credential with this name.
        NotFound: there is no such tenant.
    """
    sealed = await _seal(tenant, db, sealer, credential, secret)
    key = {"tenant_id": tenant, "id": credential.id, "created_at": credential.created_at}
    await db.execute(insert_into(credentials).values(**key, **sealed))


async def get(tenant: TenantId, db: Db, name_or_id: str) -> StoredCredential | None:
    """The credential with this id or name without its secret; an id takes precedence."""
    is_named = or_(credentials.c.id == name_or_id, credentials.c.name == name_or_id)
    query = _select_public(tenant).where(is_named).order_by((credentials.c.id == name_or_id).desc()).limit(1)
    row = (await db.execute(query)).mappings().one_or_none()
    return _from_row(row) if row else None


async def page(
    tenant: TenantId, db: Db, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[StoredCredential]:
    """One page of the tenant's credentials without their secrets, by default sorted by name."""
    query = select_page(_select_public(tenant), credentials.c, "name", after=after, limit=limit, order=order)
    return [_from_row(row) for row in (await db.execute(query)).mappings()]


async def count(tenant: TenantId, db: Db) -> int:
    """Number of the tenant's credentials."""
    counted = select(func.count()).select_from(credentials).where(credentials.c.tenant_id == tenant)
    return int((await db.execute(counted)).scalar_one())


async def open_named(tenant: TenantId, db: Db, sealer: EnvelopeCipher, name: str) -> NamedCredential | None:
    """The credential with this name and its decrypted secret, for requests to upstreams.

    Raises:
        SecretUnreadable: the stored value was changed, or no configured key decrypts it.
    """
    columns = (*_PUBLIC_COLUMNS, credentials.c.sealed, data_keys.c.wrapped)
    query = select(*columns).join_from(credentials, data_keys, _key_join())
    rows = await db.execute(query.where(credentials.c.tenant_id == tenant, credentials.c.name == name))
    row = rows.mappings().one_or_none()
    if row is None:
        return None
    found = _from_row(row)
    plain = sealer.open(tenant, row["wrapped"], row["sealed"], *_sealing_context(found))
    secret = msgspec.json.decode(plain, type=_PlainCredential)
    return NamedCredential(
        place=found.place.value,
        credential=Credential(value=secret.value, username=secret.username),
        origins=found.origins,
        field=found.field,
        name=found.name,
        id=found.id,
        delegation=found.delegation,
        reference=found.reference,
    )


async def save(
    tenant: TenantId, db: Db, sealer: EnvelopeCipher, credential: StoredCredential, secret: Credential
) -> None:
    """Store a credential with a new secret. The version is taken from `credential`.

    Raises:
        NotFound: the tenant has no such credential.
    """
    sealed = await _seal(tenant, db, sealer, credential, secret)
    matches = (credentials.c.tenant_id == tenant, credentials.c.id == credential.id)
    changed = await db.execute(update(credentials).where(*matches).values(**sealed).returning(credentials.c.id))
    if changed.one_or_none() is None:
        raise NotFound("There is no such credential.")


async def names_with_reference(tenant: TenantId, db: Db, *, limit: int) -> Sequence[str]:
    """Names of the credentials that refer to external secret stores, sorted."""
    query = select(credentials.c.name).where(credentials.c.tenant_id == tenant, credentials.c.reference.is_not(None))
    return list((await db.execute(query.order_by(credentials.c.name).limit(limit))).scalars())


async def sources_using(tenant: TenantId, db: Db, name: str) -> Sequence[str]:
    """Names of the sources whose security schemes use the credential of this name."""
    is_related = (secrets.c.tenant_id == tenant, secrets.c.credential == name)
    joined = (sources.c.tenant_id == secrets.c.tenant_id) & (sources.c.id == secrets.c.source_id)
    query = select(sources.c.name).distinct().join_from(secrets, sources, joined).where(*is_related)
    return list((await db.execute(query.order_by(sources.c.name))).scalars())


async def remove(tenant: TenantId, db: Db, credential: CredentialId) -> bool:
    """Delete a credential; True if it existed."""
    matches = (credentials.c.tenant_id == tenant, credentials.c.id == credential)
    return (await db.execute(delete(credentials).where(*matches).returning(credentials.c.id))).one_or_none() is not None


class _PlainCredential(msgspec.Struct):
    value: str
    username: str | None = None


async def _seal(
    tenant: TenantId, db: Db, sealer: EnvelopeCipher, credential: StoredCredential, secret: Credential
) -> dict[str, object]:
    key_id, wrapped = await tenant_key(tenant, db, sealer)
    plain = msgspec.json.encode(_PlainCredential(value=secret.value, username=secret.username))
    return {
        "name": credential.name,
        "place": credential.place.value,
        "field": credential.field,
        "origins": list(credential.origins),
        "delegation": None if credential.delegation is None else msgspec.to_builtins(credential.delegation),
        "reference": None if credential.reference is None else msgspec.to_builtins(credential.reference),
        "version": credential.version,
        "data_key_id": key_id,
        "sealed": sealer.seal(tenant, wrapped, plain, *_sealing_context(credential)),
        "updated_at": credential.updated_at,
    }


def _sealing_context(credential: StoredCredential) -> tuple[str, ...]:
    """The encryption context of a credential, to which its value is bound."""
    row_values = (credential.name, str(credential.version), credential.place.value, credential.field)
    delegation = credential.delegation
    # guard: delegation-sealed
    more = () if delegation is None else (_DELEGATED, msgspec.json.encode(delegation, order="sorted").decode())
    outside = () if credential.reference is None else (_REFERENCE, str(credential.reference))  # guard: reference-sealed
    return ("credential", credential.id, *row_values, *credential.origins, *more, *outside)


def sealed_context(row: RowMapping, _: str) -> tuple[str, ...]:
    """Callback for key rotation: the encryption context of a stored row."""
    return _sealing_context(_from_row(row))


def _select_public(tenant: TenantId) -> Select[*tuple[object, ...]]:
    return select(*_PUBLIC_COLUMNS).where(credentials.c.tenant_id == tenant)


def _key_join() -> ColumnElement[bool]:
    return and_(data_keys.c.tenant_id == credentials.c.tenant_id, data_keys.c.id == credentials.c.data_key_id)


def _from_row(row: RowMapping) -> StoredCredential:
    return StoredCredential(
        id=CredentialId(row["id"]),
        name=row["name"],
        place=CredentialLocation(row["place"]),
        field=row["field"],
        origins=tuple(row["origins"]),
        version=row["version"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        delegation=None if row["delegation"] is None else msgspec.convert(row["delegation"], Delegation),
        reference=None if row["reference"] is None else msgspec.convert(row["reference"], SecretReference),
    )
