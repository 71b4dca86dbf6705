"""Credentials that handlers and watches refer to by name: written whole, listed without their secrets.

The allowed origins are written together with the secret. A caller that may change a credential but does not know its
secret cannot redirect it to another origin.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from gateway.catalog.etags import Expected, check_version
from gateway.catalog.origins import read_origins, refusal
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, change
from gateway.domain.credentials import AUTHORIZATION, CredentialLocation, StoredCredential
from gateway.domain.http.headers import is_private
from gateway.domain.http.requests import Credential
from gateway.domain.identifiers import TenantId, new_credential_id
from gateway.domain.order import KEYED, Order
from gateway.errors import Conflict, Fault, LimitExceeded, NameConflict, NameTaken, NotFound
from gateway.store import credentials, primitives
from gateway.store.audit import sinks
from gateway.store.calls import guardrails
from gateway.store.engine import Db
from gateway.store.live import live_sources
from gateway.store.updates import watches
from gateway.upstream.serialize.header_checks import is_header_value, is_sendable_header

MOST_CREDENTIALS = 1_000
"""Limit on the credentials of one tenant."""
_MOST_USERS_SHOWN = 20
_NEVER_FILLED = frozenset({"accept", "content-type"})
_WITH_FIELD = frozenset({CredentialLocation.HEADER, CredentialLocation.QUERY})


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialDraft:
    """A requested credential: it contains either a value, or a user name and a password."""

    name: str
    place: CredentialLocation
    origins: Sequence[str]
    value: str | None = field(default=None, repr=False)
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    field: str | None = None


async def create_credential(
    tenant: TenantId, catalog: CatalogContext, draft: CredentialDraft, *, by: Author
) -> StoredCredential:
    """Create a credential.

    Raises:
        InvalidBody: members of the draft do not fit together.
        NameTaken: the tenant has a credential of this name.
        LimitExceeded: the tenant has reached its limit of credentials.
    """
    made, secret = _compose(draft)
    entry = CatalogChange(action="credential.create", target=draft.name, detail=_detail(made))
    async with change(tenant, catalog, entry, by=by) as db:
        if await credentials.get(tenant, db, draft.name) is not None:
            conflict = NameConflict(name=draft.name, owner=f"credential:{draft.name}")
            raise NameTaken(f"a credential {draft.name} exists already", conflicts=[conflict])
        if await credentials.count(tenant, db) >= MOST_CREDENTIALS:
            raise LimitExceeded(f"the tenant has {MOST_CREDENTIALS} credentials (the limit); delete unused ones")
        await credentials.insert(tenant, db, catalog.sealer, made, secret)
    return made


async def replace_credential(
    tenant: TenantId, catalog: CatalogContext, draft: CredentialDraft, *, by: Author, expected: Expected = None
) -> StoredCredential:
    """Replace the secret, location, field and origins of the credential with the draft's name or id.

    Raises:
        NotFound: the tenant has no such credential.
        InvalidBody: members of the draft do not fit together.
        PreconditionFailed: the current version matches no expected tag.
    """
    made, secret = _compose(draft)
    entry = CatalogChange(action="credential.update", target=draft.name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await find_credential(tenant, db, draft.name)
        check_version(current, expected)
        revised = replace(
            made, id=current.id, name=current.name, version=current.version + 1, created_at=current.created_at
        )
        entry.target, entry.detail = current.name, _detail(revised)
        await credentials.save(tenant, db, catalog.sealer, revised, secret)
    return revised


async def get_credential(tenant: TenantId, catalog: CatalogContext, name: str) -> StoredCredential:
    """The credential of this name or id, without its secret.

    Raises:
        NotFound: the tenant has none.
    """
    async with catalog.store.transaction(tenant) as db:
        return await find_credential(tenant, db, name)


async def page_credentials(
    tenant: TenantId, catalog: CatalogContext, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[StoredCredential]:
    """One page of the tenant's credentials without their secrets, by default in order of names."""
    async with catalog.store.transaction(tenant) as db:
        return await credentials.page(tenant, db, after=after, limit=limit, order=order)


async def remove_credential(
    tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author, expected: Expected = None
) -> None:
    """Delete the credential.

    Raises:
        NotFound: the tenant has none.
        Conflict: handlers, watches, live sources, guardrails or sinks name it; the faults list the first 20 of them.
        PreconditionFailed: the current version matches no expected tag.
    """
    entry = CatalogChange(action="credential.delete", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await find_credential(tenant, db, name)
        check_version(current, expected)
        entry.target, entry.detail = current.name, {"id": current.id}
        users: list[tuple[str, str]] = [*await primitives.users(tenant, db, f"credential:{current.name}")]
        users += [("watch", uri) for uri in await watches.of_credential(tenant, db, current.name)]
        users += [("live_source", live) for live in await live_sources.of_credential(tenant, db, current.name)]
        users += [("guardrail", used) for used in await guardrails.of_credential(tenant, db, current.name)]
        users += [("audit_sink", used) for used in await sinks.of_credential(tenant, db, current.name)]
        refuse_in_use("credential", current.name, users)
        await credentials.remove(tenant, db, current.id)


async def find_credential(tenant: TenantId, db: Db, name: str) -> StoredCredential:
    """The credential of this name or id, read in the caller's transaction.

    Raises:
        NotFound: the tenant has none.
    """
    found = await credentials.get(tenant, db, name)
    if found is None:
        raise NotFound("no such credential")
    return found


def refuse_in_use(noun: str, name: str, users: Sequence[tuple[str, str]]) -> None:
    """Refuse the removal of an object that has users.

    Raises:
        Conflict: there are users; the faults name the first 20.
    """
    if not users:
        return
    shown = [f"{kind.replace('_', ' ')} {user}" for kind, user in users[:_MOST_USERS_SHOWN]]
    more = f" and {len(users) - 1} more" if len(users) > 1 else ""
    faults = [Fault(pointer="", reason=f"used by {user}") for user in shown]
    raise Conflict(f"the {noun} {name} is used by {shown[0]}{more}", faults=faults)


def _compose(draft: CredentialDraft) -> tuple[StoredCredential, Credential]:
    now = datetime.now(UTC)
    made = StoredCredential(
        id=new_credential_id(),
        name=draft.name,
        place=draft.place,
        field=_field(draft),
        origins=read_origins(draft.origins, pointer="/origins"),
        version=1,
        created_at=now,
        updated_at=now,
    )
    return made, _secret(draft)


def _field(draft: CredentialDraft) -> str:
    if draft.place not in _WITH_FIELD:
        if draft.field is not None:
            raise refusal("/field", f"a {draft.place} credential goes into the header {AUTHORIZATION}; leave it out")
        return AUTHORIZATION
    if draft.field is None:
        raise refusal("/field", f"required: the name of the {draft.place} that the credential fills")
    if draft.place is CredentialLocation.HEADER and not _is_sendable(draft.field):
        raise refusal("/field", "must be the name of a header that requests of the gateway may carry")
    return draft.field


def _is_sendable(header: str) -> bool:
    return is_sendable_header(header) and header.lower() not in _NEVER_FILLED and not is_private(header)


def _secret(draft: CredentialDraft) -> Credential:
    is_login = draft.username is not None and draft.password is not None
    if draft.place is CredentialLocation.BASIC:
        if draft.value is not None or not is_login:
            raise refusal("", "a basic credential has username and password, and no value")
        if ":" in (draft.username or ""):
            raise refusal("/username", "must not contain a colon (RFC 7617)")
        return Credential(username=draft.username, value=draft.password or "")
    if draft.value is None or draft.username is not None or draft.password is not None:
        raise refusal("", f"a {draft.place} credential has a value, and no username and password")
    if draft.place is not CredentialLocation.QUERY and not is_header_value(draft.value):
        raise refusal("/value", "must be visible ASCII to go into a header")
    return Credential(value=draft.value)


def _detail(made: StoredCredential) -> dict[str, object]:
    return {"id": made.id, "place": made.place.value, "field": made.field, "origins": list(made.origins)}
