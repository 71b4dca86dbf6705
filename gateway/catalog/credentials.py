"""Credentials to which handlers and watches refer by name, listed without secrets.

The allowed origins are stored together with the secret, and a change that keeps the secret changes no receiver. So a
caller that may change a credential but does not know its secret cannot redirect it to another origin.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from gateway.catalog.egress import refusal
from gateway.catalog.etags import Expected, check_version, tag_of
from gateway.catalog.identity.client_secrets import check_reference
from gateway.catalog.identity.delegations import CredentialDraft, build_delegation, draft_of
from gateway.catalog.kinds.special_functions import refuse_in_use
from gateway.catalog.origins import read_origins
from gateway.catalog.snapshots.credential_cache import read_external_secret
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, change
from gateway.domain.credentials import (
    AUTHORIZATION,
    AccountTerms,
    CredentialKind,
    CredentialLocation,
    Delegation,
    StoredCredential,
    TokenExchange,
    terms_digest,
)
from gateway.domain.http.headers import is_private
from gateway.domain.http.requests import Credential, NamedCredential
from gateway.domain.identifiers import TenantId, new_credential_id
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.secret_references import SecretReference
from gateway.errors import (
    LimitExceeded,
    NameConflict,
    NameTaken,
    NotFound,
)
from gateway.store import credentials, primitives
from gateway.store.engine import Db
from gateway.store.identity import accounts
from gateway.store.kinds.audit_sinks import SINKS
from gateway.store.kinds.guardrails import GUARDRAILS
from gateway.store.kinds.watches import WATCHES
from gateway.store.live import live_sources
from gateway.upstream.serialize.header_checks import is_header_value, is_sendable_header

MAX_CREDENTIALS = 1_000
"""Limit on the credentials of one tenant."""
_RESERVED_HEADERS = frozenset({"accept", "content-type"})
_LOCATIONS_WITH_FIELD = frozenset({CredentialLocation.HEADER, CredentialLocation.QUERY})


async def create_credential(
    tenant: TenantId, catalog: CatalogContext, draft: CredentialDraft, *, by: Author
) -> StoredCredential:
    """Create a credential.

    Raises:
        InvalidBody: members of the draft do not fit together, or the issuer has no token endpoint.
        ReferenceMissing: the tenant has no such issuer.
        NameTaken: the tenant has a credential of this name.
        LimitExceeded: the tenant has reached its limit of credentials.
    """
    _check_reference(catalog, draft, by)
    new_credential, secret = _compose(draft, await build_delegation(tenant, catalog, draft))
    entry = CatalogChange(action="credential.create", target=draft.name, after=new_credential)
    entry.detail = _detail(new_credential)
    async with change(tenant, catalog, entry, by=by) as db:
        if await credentials.get(tenant, db, draft.name) is not None:
            conflict = NameConflict(name=draft.name, owner=f"credential:{draft.name}")
            raise NameTaken(f"a credential {draft.name} exists already", conflicts=[conflict])
        if await credentials.count(tenant, db) >= MAX_CREDENTIALS:
            raise LimitExceeded(f"the tenant has {MAX_CREDENTIALS} credentials (the limit); delete unused ones")
        await credentials.insert(tenant, db, catalog.sealer, new_credential, secret)
    return new_credential


async def replace_credential(
    tenant: TenantId, catalog: CatalogContext, draft: CredentialDraft, *, by: Author, expected: Expected = None
) -> StoredCredential:
    """Replace the secret, location, field and origins of the credential with the draft's name or id.

    Raises:
        NotFound: the tenant has no such credential.
        InvalidBody, ReferenceMissing: as for a new credential.
        PreconditionFailed: the current version matches no expected tag.
    """
    _check_reference(catalog, draft, by)
    composed = _compose(draft, await build_delegation(tenant, catalog, draft))
    return await _save(tenant, catalog, draft.name, composed, by=by, expected=expected)


async def update_credential(
    tenant: TenantId,
    catalog: CatalogContext,
    name: str,
    revise: Callable[[CredentialDraft], CredentialDraft],
    *,
    by: Author,
    expected: Expected = None,
) -> StoredCredential:
    """Change a credential. Without a new secret, the stored one is kept only for unchanged receivers.

    `revise` is given the stored members without the secret. A draft that it returns without a value, password or
    reference keeps the secret.

    Raises:
        NotFound: the tenant has no such credential.
        InvalidBody: members do not fit together, or one that names a receiver of the kept secret was changed.
        ReferenceMissing: the tenant has no such issuer.
        PreconditionFailed: the current version matches no expected tag, or the credential was changed meanwhile.
    """
    async with catalog.store.transaction(tenant) as db:
        seen = await find_credential(tenant, db, name)
        check_version(seen, expected)
        stored = await credentials.open_named(tenant, db, catalog.sealer, seen.name)
    draft = revise(draft_of(seen))
    has_secret = draft.value is not None or draft.password is not None or draft.reference is not None
    if not has_secret and stored is not None:
        draft = _with_secret(draft, seen, stored.credential)
    elif draft.reference is not None:
        _check_reference(catalog, draft, by)
    composed = _compose(draft, await build_delegation(tenant, catalog, draft))
    if not has_secret and draft.kind is not CredentialKind.ASSERTION:
        _check_receivers(seen, composed[0])
    return await _save(tenant, catalog, seen.id, composed, by=by, expected=frozenset({tag_of(seen)}))


async def _save(
    tenant: TenantId,
    catalog: CatalogContext,
    name: str,
    composed: tuple[StoredCredential, Credential],
    *,
    by: Author,
    expected: Expected,
) -> StoredCredential:
    entry = CatalogChange(action="credential.update", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await find_credential(tenant, db, name)
        check_version(current, expected)
        revised = replace(
            composed[0], id=current.id, name=current.name, version=current.version + 1, created_at=current.created_at
        )
        entry.target, entry.detail = current.name, _detail(revised)
        entry.before, entry.after = current, revised
        await credentials.save(tenant, db, catalog.sealer, revised, composed[1])
        # guard: account-terms-replaced
        if ended := await accounts.remove_other_terms(tenant, db, current.id, terms_of(revised)):
            entry.detail["accounts_ended"] = ended
    return revised


async def test_credential(tenant: TenantId, catalog: CatalogContext, name: str) -> SecretReference | None:
    """Read the secret of a credential as a call would, and return its reference; None if it is stored here.

    Raises:
        NotFound: the tenant has no such credential.
        SecretUnreadable: no configured key decrypts the secret.
        SecretUnavailable: the external store did not return the secret; the message contains the reason.
    """
    async with catalog.store.transaction(tenant) as db:
        found = await find_credential(tenant, db, name)
        opened = await credentials.open_named(tenant, db, catalog.sealer, found.name)
    await read_external_secret(catalog.store, catalog.secret_stores, tenant, opened)
    return found.reference


async def get_credential(tenant: TenantId, catalog: CatalogContext, name: str) -> StoredCredential:
    """The credential of this name or id, without its secret.

    Raises:
        NotFound: the tenant has no such credential.
    """
    async with catalog.store.transaction(tenant) as db:
        return await find_credential(tenant, db, name)


async def page_credentials(
    tenant: TenantId, catalog: CatalogContext, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[StoredCredential]:
    """One page of the tenant's credentials without their secrets, by default sorted by name."""
    async with catalog.store.transaction(tenant) as db:
        return await credentials.page(tenant, db, after=after, limit=limit, order=order)


async def remove_credential(
    tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author, expected: Expected = None
) -> None:
    """Delete the credential.

    Raises:
        NotFound: the tenant has no such credential.
        Conflict: handlers, sources, watches, live sources, guardrails or sinks name it; the faults list the first 20.
        PreconditionFailed: the current version matches no expected tag.
    """
    entry = CatalogChange(action="credential.delete", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await find_credential(tenant, db, name)
        check_version(current, expected)
        entry.target, entry.detail, entry.before = current.name, {"id": current.id}, current
        users: list[tuple[str, str]] = [*await primitives.users(tenant, db, f"credential:{current.name}")]
        users += [("watch", uri) for uri in await WATCHES.names_with(tenant, db, "credential", current.name)]
        users += [("live_source", live) for live in await live_sources.of_credential(tenant, db, current.name)]
        users += [("guardrail", used) for used in await GUARDRAILS.names_with(tenant, db, "credential", current.name)]
        users += [("audit_sink", used) for used in await SINKS.names_with(tenant, db, "credential", current.name)]
        users += [("source", source) for source in await credentials.sources_using(tenant, db, current.name)]
        refuse_in_use("credential", current.name, users)
        await credentials.remove(tenant, db, current.id)


async def find_credential(tenant: TenantId, db: Db, name: str) -> StoredCredential:
    """The credential of this name or id, read in the caller's transaction.

    Raises:
        NotFound: the tenant has no such credential.
    """
    found = await credentials.get(tenant, db, name)
    if found is None:
        raise NotFound("no such credential")
    return found


def terms_of(credential: StoredCredential | NamedCredential) -> str | None:
    """The digest of the terms under which users connect accounts at a credential; None if it has no such terms."""
    terms, place = credential.delegation, str(credential.place)
    if not isinstance(terms, AccountTerms):
        return None
    return terms_digest(terms, place, credential.field, credential.origins)


async def find_obstacle(
    tenant: TenantId, db: Db, name: str, origin: str | None, *, of_caller: bool = False
) -> str | None:
    """Return the reason why requests to an origin cannot use this credential; None if they can.

    With `of_caller`, the requests belong to calls, and the credential must identify the caller. Otherwise the gateway
    itself sends them, and a shared credential is required.
    """
    found = await credentials.get(tenant, db, name)
    if found is None:
        return "the tenant has no such credential"
    if found.name != name or origin not in found.origins:
        return "the credential was not stored for this origin"
    if of_caller:
        return None if found.delegation is not None else "a shared credential names no caller; use `credential`"
    if found.delegation is not None:  # guard: delegation-without-caller-declared
        return f"the credential names the caller ({found.kind}), and these requests have none; store a shared one"
    return None


def _compose(draft: CredentialDraft, delegation: Delegation | None) -> tuple[StoredCredential, Credential]:
    now = datetime.now(UTC)
    new_credential = StoredCredential(
        id=new_credential_id(),
        name=draft.name,
        place=draft.place,
        field=_field(draft),
        origins=read_origins(draft.origins, pointer="/origins"),
        version=1,
        created_at=now,
        updated_at=now,
        delegation=delegation,
        reference=draft.reference,
    )
    return new_credential, Credential(value="") if draft.kind is CredentialKind.ASSERTION else _secret(draft)


def _with_secret(draft: CredentialDraft, stored: StoredCredential, secret: Credential) -> CredentialDraft:
    """Return the draft with the stored secret, or the stored reference to it."""
    if draft.kind is CredentialKind.ASSERTION:
        return draft
    username = draft.username if draft.username is not None else secret.username
    if stored.reference is not None:
        return replace(draft, reference=stored.reference, username=username)
    if stored.place is CredentialLocation.BASIC:
        return replace(draft, username=username, password=secret.value)
    return replace(draft, value=secret.value)


def _check_receivers(before: StoredCredential, after: StoredCredential) -> None:
    """Refuse to keep a secret for another receiver: an author of changes need not know the secret that it would get."""
    old, new = _receivers(before), _receivers(after)
    for name in {**old, **new}:
        if old.get(name) != new.get(name):  # guard: credential-receivers
            raise refusal(
                f"/{name}", "names a receiver of the secret: send the secret again (`value`, `password` or `reference`)"
            )


def _receivers(credential: StoredCredential) -> Mapping[str, object]:
    """The members that name the receivers of the secret, or of tokens that are issued for it."""
    found: dict[str, object] = {"kind": credential.kind, "origins": sorted(credential.origins)}
    match credential.delegation:
        case TokenExchange() as terms:
            return found | {"issuer": (terms.issuer, terms.token_url)}
        case AccountTerms() as terms:
            urls = {"token_url": terms.token_url, "revocation_url": terms.revocation_url}
            return found | urls | {"server": terms.server, "authorization_url": terms.authorization_url}
        case _:
            return found


def _field(draft: CredentialDraft) -> str:
    if draft.place not in _LOCATIONS_WITH_FIELD:
        if draft.field is not None:
            raise refusal("/field", f"a {draft.place} credential is sent in the header {AUTHORIZATION}; omit `field`")
        return AUTHORIZATION
    if draft.field is None:
        raise refusal("/field", f"required: the name of the {draft.place} that the credential fills")
    if draft.place is CredentialLocation.HEADER and not _is_sendable(draft.field):
        raise refusal("/field", "must be the name of a header that requests of the gateway may carry")
    return draft.field


def _is_sendable(header: str) -> bool:
    return is_sendable_header(header) and header.lower() not in _RESERVED_HEADERS and not is_private(header)


def _check_reference(catalog: CatalogContext, draft: CredentialDraft, by: Author) -> None:
    """Refuse a malformed reference, one with a secret beside it, and one that the author is not allowed to create."""
    reference = draft.reference
    if reference is None:
        return
    if draft.value is not None or draft.password is not None:
        raise refusal("/reference", "the secret is either stored here or in an external store; give one of them")
    if draft.kind is CredentialKind.ASSERTION:
        raise refusal("/reference", "an assertion has no secret; omit it")
    check_reference(catalog, reference, "/reference", by=by)


def _secret(draft: CredentialDraft) -> Credential:
    if draft.reference is not None:
        if (draft.username is not None) is not (draft.place is CredentialLocation.BASIC):
            raise refusal("/username", "a basic credential has a user name beside its reference, no other has one")
        return Credential(username=draft.username, value="")
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
        raise refusal("/value", "must be visible ASCII, because it is sent in a header")
    return Credential(value=draft.value)


def _detail(made: StoredCredential) -> dict[str, object]:
    return {"id": made.id, "kind": made.kind.value}
