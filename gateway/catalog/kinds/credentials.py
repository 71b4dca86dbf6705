"""Credentials to which handlers, sources and watches refer by name: canonical form, secret, users and accounts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gateway.catalog.credentials import terms_of
from gateway.catalog.egress import refusal
from gateway.catalog.identity.client_secrets import check_reference
from gateway.catalog.identity.delegations import find_status
from gateway.catalog.kinds.engines.secret_collection import SecretCollection
from gateway.catalog.origins import read_origins
from gateway.catalog.tenants import get_tenant
from gateway.catalog.transaction import Author, CatalogContext, OpenChanges
from gateway.domain.credentials import (
    AUTHORIZATION,
    CredentialKind,
    CredentialLocation,
    StoredCredential,
    connect_url,
)
from gateway.domain.http.headers import is_private
from gateway.domain.identifiers import TenantId
from gateway.kinds.credentials import CREDENTIAL
from gateway.kinds.members import moved_receivers
from gateway.store import primitives
from gateway.store.engine import Db
from gateway.store.identity import accounts
from gateway.store.kinds.audit_sinks import SINKS
from gateway.store.kinds.credentials import CREDENTIALS as ROWS
from gateway.store.kinds.credentials import SealedCredential, sources_using
from gateway.store.kinds.guardrails import GUARDRAILS
from gateway.store.kinds.watches import WATCHES
from gateway.store.live import live_sources
from gateway.upstream.serialize.header_checks import is_header_value, is_sendable_header

_RESERVED_HEADERS = frozenset({"accept", "content-type"})
_LOCATIONS_WITH_FIELD = frozenset({CredentialLocation.HEADER, CredentialLocation.QUERY})


async def _prepare(tenant: TenantId, catalog: CatalogContext, wanted: StoredCredential, by: Author) -> StoredCredential:
    """Return the credential with the endpoints from the metadata of its issuer or server."""
    del by
    wanted = _normalise(wanted)
    return replace(wanted, status=await find_status(tenant, catalog, wanted))


async def _complete(
    opened: OpenChanges, current: StoredCredential | None, wanted: StoredCredential
) -> StoredCredential:
    del opened, current
    return _normalise(wanted)


def _normalise(one: StoredCredential) -> StoredCredential:
    """Return the credential with its field and with normalised origins."""
    return replace(one, field=_field(one), origins=read_origins(one.origins, pointer="/origins"))


def _field(one: StoredCredential) -> str:
    if one.place not in _LOCATIONS_WITH_FIELD:
        if one.field not in {None, AUTHORIZATION}:
            raise refusal("/field", f"a {one.place} credential is sent in the header {AUTHORIZATION}; omit `field`")
        return AUTHORIZATION
    if one.field is None:
        raise refusal("/field", f"required: the name of the {one.place} that the credential fills")
    if one.place is CredentialLocation.HEADER and not _is_sendable(one.field):
        raise refusal("/field", "must be the name of a header that requests of the gateway may carry")
    return one.field


def _is_sendable(header: str) -> bool:
    return is_sendable_header(header) and header.lower() not in _RESERVED_HEADERS and not is_private(header)


def _needs(one: StoredCredential) -> Sequence[str]:
    if one.kind is CredentialKind.ASSERTION:
        return ()
    login = ("username",) if one.place is CredentialLocation.BASIC else ()
    return (*login, "reference" if one.reference is not None else "password" if login else "value")


def _seal(one: StoredCredential, stored: SealedCredential | None) -> SealedCredential:
    """Return the secret to store: a value, a password with its user name, or neither beside a reference."""
    needed = {*_needs(one)} - {"reference"}
    parts = {"value": one.value, "username": one.username, "password": one.password}
    given = {name: secret.reveal() for name, secret in parts.items() if secret is not None}
    if stored is not None:
        kept = {"username": stored.username or "", "value": stored.value, "password": stored.value}
        given = {name: text for name, text in kept.items() if text and name in needed} | given
    if given.keys() != needed:
        raise refusal(*_misfit(one, given))
    if ":" in given.get("username", ""):
        raise refusal("/username", "must not contain a colon (RFC 7617)")
    if "value" in given and one.place is not CredentialLocation.QUERY and not is_header_value(given["value"]):
        raise refusal("/value", "must be visible ASCII, because it is sent in a header")
    return SealedCredential(value=given.get("value", given.get("password", "")), username=given.get("username"))


def _misfit(one: StoredCredential, given: Mapping[str, str]) -> tuple[str, str]:
    """The member and the reason why the parts of a secret do not fit."""
    if one.kind is CredentialKind.ASSERTION:
        return "/value", "an assertion has no secret; omit it"
    if one.reference is not None and given.keys() & {"value", "password"}:
        return "/reference", "the secret is either stored here or in an external store; give one of them"
    if one.reference is not None:
        return "/username", "a basic credential has a user name beside its reference, no other has one"
    if one.place is CredentialLocation.BASIC:
        return "", "a basic credential has username and password, and no value"
    pointer = "" if one.kind is CredentialKind.SHARED else "/value"
    return pointer, f"a {one.place} credential has a value, and no username and password"


async def _check(opened: OpenChanges, current: StoredCredential | None, wanted: StoredCredential) -> None:
    """Refuse a reference to an external store that the author may not create; the stored one may stay."""
    if wanted.reference is None:
        return
    if wanted.kind is CredentialKind.ASSERTION:
        raise refusal("/reference", "an assertion has no secret; omit it")
    is_kept = current is not None and current.reference == wanted.reference
    if not is_kept or any(moved_receivers(current, wanted)):  # guard: reference-of-the-author
        check_reference(opened.catalog, wanted.reference, "/reference", by=opened.by)


async def _end_accounts(
    opened: OpenChanges, before: StoredCredential | None, after: StoredCredential | None
) -> Mapping[str, object]:
    """Remove the accounts that were connected under other terms."""
    if before is None or after is None:
        return {}
    # guard: account-terms-replaced
    ended = await accounts.remove_other_terms(opened.tenant, opened.db, after.id, terms_of(after))
    return {"accounts_ended": ended} if ended else {}


async def _users(tenant: TenantId, db: Db, one: StoredCredential) -> Sequence[tuple[str, str]]:
    return [
        *await primitives.users(tenant, db, f"credential:{one.name}"),
        *(("watch", uri) for uri in await WATCHES.names_with(tenant, db, "credential", one.name)),
        *(("live_source", name) for name in await live_sources.of_credential(tenant, db, one.name)),
        *(("guardrail", name) for name in await GUARDRAILS.names_with(tenant, db, "credential", one.name)),
        *(("audit_sink", name) for name in await SINKS.names_with(tenant, db, "credential", one.name)),
        *(("source", name) for name in await sources_using(tenant, db, one.name)),
    ]


async def _read_status(
    tenant: TenantId, catalog: CatalogContext, found: Sequence[StoredCredential]
) -> Sequence[object]:
    """The status of each credential, with the redirect URI of accounts of users."""
    public_url = catalog.options.public_url
    if public_url is None or not any(one.kind is CredentialKind.USER for one in found):
        return [one.status for one in found]
    slug = (await get_tenant(tenant, catalog)).slug
    return [
        replace(one.status, redirect_uri=connect_url(public_url, slug, one.name, "callback"))
        if one.kind is CredentialKind.USER
        else one.status
        for one in found
    ]


CREDENTIALS = SecretCollection(
    kind=CREDENTIAL,
    rows=ROWS,
    sealed=ROWS,
    prepare=_prepare,
    complete=_complete,
    check=_check,
    needs=_needs,
    seal=_seal,
    written=_end_accounts,
    in_use=_users,
    compute=_read_status,
)
