"""Requested credentials, and the delegations with which a credential acts for the caller of a request.

Endpoints that the request does not give are read from the server's metadata when the credential is stored. A later
change of the metadata therefore sends no secret to another host.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.catalog.egress import refusal, require_tls
from gateway.catalog.identity.sign_in_clients import RESERVED
from gateway.catalog.transaction import CatalogContext
from gateway.domain.credentials import (
    AccountTerms,
    CredentialKind,
    CredentialLocation,
    Delegation,
    SignedAssertion,
    StoredCredential,
    TokenExchange,
)
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.secret_references import SecretReference
from gateway.errors import CredentialMissing, Fault, GatewayError, ReferenceMissing
from gateway.store.identity import issuers
from gateway.upstream.auth.assertions import check_audience, is_of_gateway
from gateway.upstream.auth.key_sets import discover, fetch_metadata

_ENDPOINTS = ("authorization_url", "token_url", "revocation_url")
_ACCOUNT_MEMBERS = ("server", *_ENDPOINTS, "parameters")
_MEMBERS_OF: Mapping[CredentialKind, tuple[tuple[str, ...], tuple[str, ...]]] = {
    CredentialKind.SHARED: ((), ()),
    CredentialKind.EXCHANGE: (("issuer", "client_id", "value"), ("issuer", "client_id", "audience", "scopes")),
    CredentialKind.ASSERTION: (("audience",), ("audience",)),
    CredentialKind.USER: (("client_id", "value"), ("client_id", "scopes", *_ACCOUNT_MEMBERS)),
}
"""Required and permitted members of each kind, in addition to those of all credentials. `value` is checked separately.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialDraft:
    """A requested credential: a value, or user name and password, or the members of its delegation.

    A token exchange has the name of the issuer and a client id; its value is the client secret. An assertion has no
    secret. A user account needs a client at an authorization server; the draft has the server or its endpoints.
    """

    name: str
    place: CredentialLocation
    origins: Sequence[str]
    kind: CredentialKind = CredentialKind.SHARED
    value: str | None = field(default=None, repr=False)
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    field: str | None = None
    audience: str | None = None
    issuer: str | None = None
    client_id: str | None = None
    scopes: tuple[str, ...] = ()
    server: str | None = None
    """The issuer identifier of the authorization server, whose metadata contains the endpoints."""
    authorization_url: str | None = None
    token_url: str | None = None
    revocation_url: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    reference: SecretReference | None = None
    """Location of the value or password in an external secret store."""


def draft_of(stored: StoredCredential) -> CredentialDraft:
    """Return the draft of a stored credential, without its secret and the reference to it."""
    has_field = stored.place in {CredentialLocation.HEADER, CredentialLocation.QUERY}
    draft = CredentialDraft(
        name=stored.name,
        kind=stored.kind,
        place=stored.place,
        origins=stored.origins,
        field=stored.field if has_field else None,
    )
    match stored.delegation:
        case None:
            return draft
        case SignedAssertion(audience=audience):
            return replace(draft, audience=audience)
        case TokenExchange() as terms:
            members = {name: getattr(terms, name) for name in ("audience", "client_id", "scopes")}
            return replace(draft, issuer=terms.issuer_name, **members)
        case AccountTerms() as terms:
            members = {name: getattr(terms, name) for name in ("client_id", "scopes", "server", "parameters")}
            urls = {} if terms.server is not None else {name: getattr(terms, name) for name in _ENDPOINTS}
            return replace(draft, **members, **urls)


async def build_delegation(tenant: TenantId, catalog: CatalogContext, draft: CredentialDraft) -> Delegation | None:
    """Return the delegation of a requested credential; None for a shared credential.

    Raises:
        InvalidBody: the draft lacks a member or has one of another kind, or the server's metadata lacks an endpoint.
        ReferenceMissing: the tenant has no such issuer.
    """
    _check_members(draft)
    _check_recipients(draft, catalog.options.public_url)
    if draft.kind is CredentialKind.ASSERTION:
        audience = draft.audience or ""
        try:
            check_audience(audience, catalog.options.public_url)
        except CredentialMissing as missing:
            raise refusal("/audience", missing.message) from None
        return SignedAssertion(audience=audience)
    if draft.kind is CredentialKind.EXCHANGE:
        return await _build_exchange(tenant, catalog, draft)
    if draft.kind is CredentialKind.USER:
        return await _build_account(tenant, catalog, draft)
    return None


async def _build_exchange(tenant: TenantId, catalog: CatalogContext, draft: CredentialDraft) -> TokenExchange:
    async with catalog.store.transaction(tenant) as db:
        issuer = await issuers.get(tenant, db, draft.issuer or "")
    if issuer is None:
        reason = "the tenant has no such issuer"
        raise ReferenceMissing(f"/issuer: {reason}", faults=[Fault(pointer="/issuer", reason=reason)])
    if draft.audience in issuer.audiences:  # guard: exchange-own-audience
        raise refusal(
            "/audience", "tokens with this audience are valid at the gateway, so no upstream may receive them"
        )
    try:
        token_url = await discover(catalog.upstream, tenant, issuer.url, "token_endpoint")
    except GatewayError as error:
        raise refusal("/issuer", error.message) from None
    await require_tls(tenant, catalog, token_url, "/issuer")
    return TokenExchange(
        issuer=issuer.id,
        issuer_name=issuer.name,
        token_url=token_url,
        client_id=draft.client_id or "",
        audience=draft.audience,
        scopes=draft.scopes,
    )


def _check_members(draft: CredentialDraft) -> None:
    """Refuse members of other kinds, and locations in which a token cannot be sent."""
    required_members, permitted_members = _MEMBERS_OF[draft.kind]
    required_members = tuple(name for name in required_members if name != "value" or draft.reference is None)
    for name in ("audience", "issuer", "client_id", "scopes", *_ACCOUNT_MEMBERS):
        if getattr(draft, name) and name not in permitted_members:
            raise refusal(f"/{name}", f"not allowed for credentials of the kind {draft.kind}; omit it")
    for name in required_members:
        if not getattr(draft, name):
            raise refusal(f"/{name}", f"required for the kind {draft.kind}")
    is_delegated = draft.kind is not CredentialKind.SHARED
    if is_delegated and draft.place not in {CredentialLocation.BEARER, CredentialLocation.HEADER}:
        raise refusal("/place", "a token of the caller is sent in a header; use bearer or header")
    if draft.kind is CredentialKind.ASSERTION and (draft.value or draft.username or draft.password):
        raise refusal("/value", "an assertion has no secret; omit it")


def _check_recipients(draft: CredentialDraft, public_url: str | None) -> None:
    """Refuse to request tokens for the gateway itself, with which their recipients could act as the caller."""
    requested = [("/audience", draft.audience or ""), *(("/parameters", value) for _, value in draft.parameters)]
    for pointer, text in requested:
        try:
            is_own = public_url is not None and is_of_gateway(text, public_url)
            is_sent_elsewhere = is_own and not all(is_of_gateway(origin, public_url or "") for origin in draft.origins)
        except ValueError:
            continue  # no URL
        if is_sent_elsewhere and draft.kind is not CredentialKind.ASSERTION:  # guard: delegated-for-gateway
            reason = "must not be a URL of the gateway, because the origins would receive a token that is valid at it"
            raise refusal(pointer, reason)


async def _build_account(tenant: TenantId, catalog: CatalogContext, draft: CredentialDraft) -> AccountTerms:
    """The terms of user accounts; their endpoints are read from the server's metadata or taken from the draft."""
    if catalog.options.public_url is None:  # guard: account-public-url
        raise refusal("/kind", "users connect accounts at the gateway's public URL: set GATEWAY_PUBLIC_URL")
    if reserved := sorted({name for name, _ in draft.parameters} & RESERVED):  # guard: account-parameters
        raise refusal("/parameters", f"the gateway sets {', '.join(reserved)} itself")
    metadata: Mapping[str, Any] = {}
    urls: dict[str, str | None] = {each: getattr(draft, each) for each in _ENDPOINTS}
    if draft.server is not None:
        if any(urls.values()):
            raise refusal("/server", "has the endpoints in its metadata; omit either the server or the endpoints")
        try:
            metadata = await fetch_metadata(catalog.upstream, tenant, draft.server)
        except GatewayError as error:
            raise refusal("/server", error.message) from None
        urls = {each: _text(metadata.get(f"{each.removesuffix('_url')}_endpoint")) for each in _ENDPOINTS}
    for each, url in urls.items():
        pointer = f"/{each}" if draft.server is None else "/server"
        if url is not None:
            await require_tls(tenant, catalog, url, pointer)  # guard: account-endpoints-tls
        elif each != "revocation_url":
            raise refusal(pointer, f"required: give `server`, whose metadata has it, or `{each}`")
    return AccountTerms(
        authorization_url=urls["authorization_url"] or "",
        token_url=urls["token_url"] or "",
        revocation_url=urls["revocation_url"],
        client_id=draft.client_id or "",
        server=draft.server,
        names_issuer=metadata.get("authorization_response_iss_parameter_supported") is True,
        scopes=draft.scopes,
        parameters=draft.parameters,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
