"""Checks of the delegations with which a credential acts for the caller of a request, and their endpoints.

Endpoints that the request does not give are read from the server's metadata when the credential is stored. A later
change of the metadata therefore sends no secret to another host.
"""

from collections.abc import Mapping
from typing import Any

from gateway.catalog.egress import refusal, require_tls
from gateway.catalog.identity.sign_in_clients import RESERVED
from gateway.catalog.transaction import CatalogContext
from gateway.domain.credentials import (
    ENDPOINTS,
    CredentialKind,
    CredentialLocation,
    CredentialStatus,
    StoredCredential,
)
from gateway.domain.identifiers import TenantId
from gateway.errors import CredentialMissing, Fault, GatewayError, ReferenceMissing
from gateway.store.identity import issuers
from gateway.upstream.auth.assertions import check_audience, is_of_gateway
from gateway.upstream.auth.key_sets import discover, fetch_metadata

_ACCOUNT_MEMBERS = ("server", *ENDPOINTS, "parameters")
_MEMBERS_OF: Mapping[CredentialKind, tuple[tuple[str, ...], tuple[str, ...]]] = {
    CredentialKind.SHARED: ((), ()),
    CredentialKind.EXCHANGE: (("issuer", "client_id"), ("issuer", "client_id", "audience", "scopes")),
    CredentialKind.ASSERTION: (("audience",), ("audience",)),
    CredentialKind.USER: (("client_id",), ("client_id", "scopes", *_ACCOUNT_MEMBERS)),
}
"""Required and permitted members of each kind, in addition to those of all credentials."""


async def find_status(tenant: TenantId, catalog: CatalogContext, wanted: StoredCredential) -> CredentialStatus:
    """Return the status of a requested credential: the endpoints of its delegation.

    Raises:
        InvalidBody: the credential lacks a member or has one of another kind, or the metadata lacks an endpoint.
        ReferenceMissing: the tenant has no such issuer.
    """
    _check_members(wanted)
    _check_recipients(wanted, catalog.options.public_url)
    match wanted.kind:
        case CredentialKind.SHARED:
            return CredentialStatus()
        case CredentialKind.ASSERTION:
            try:
                check_audience(wanted.audience or "", catalog.options.public_url)
            except CredentialMissing as missing:
                raise refusal("/audience", missing.message) from None
            return CredentialStatus()
        case CredentialKind.EXCHANGE:
            return await _find_exchange(tenant, catalog, wanted)
        case CredentialKind.USER:
            return await _find_account(tenant, catalog, wanted)


async def _find_exchange(tenant: TenantId, catalog: CatalogContext, wanted: StoredCredential) -> CredentialStatus:
    async with catalog.store.transaction(tenant) as db:
        issuer = await issuers.get(tenant, db, wanted.issuer or "")
    if issuer is None:
        reason = "the tenant has no such issuer"
        raise ReferenceMissing(f"/issuer: {reason}", faults=[Fault(pointer="/issuer", reason=reason)])
    if wanted.audience in issuer.audiences:  # guard: exchange-own-audience
        raise refusal(
            "/audience", "tokens with this audience are valid at the gateway, so no upstream may receive them"
        )
    try:
        token_url = await discover(catalog.upstream, tenant, issuer.url, "token_endpoint")
    except GatewayError as error:
        raise refusal("/issuer", error.message) from None
    await require_tls(tenant, catalog, token_url, "/issuer")
    return CredentialStatus(issuer=issuer.id, token_url=token_url)


def _check_members(wanted: StoredCredential) -> None:
    """Refuse members of other kinds, and locations in which a token cannot be sent."""
    required_members, permitted_members = _MEMBERS_OF[wanted.kind]
    for name in ("audience", "issuer", "client_id", "scopes", *_ACCOUNT_MEMBERS):
        if getattr(wanted, name) and name not in permitted_members:
            raise refusal(f"/{name}", f"not allowed for credentials of the kind {wanted.kind}; omit it")
    for name in required_members:
        if not getattr(wanted, name):
            raise refusal(f"/{name}", f"required for the kind {wanted.kind}")
    is_delegated = wanted.kind is not CredentialKind.SHARED
    if is_delegated and wanted.place not in {CredentialLocation.BEARER, CredentialLocation.HEADER}:
        raise refusal("/place", "a token of the caller is sent in a header; use bearer or header")


def _check_recipients(wanted: StoredCredential, public_url: str | None) -> None:
    """Refuse to request tokens for the gateway itself, with which their recipients could act as the caller."""
    requested = [
        ("/audience", wanted.audience or ""),
        *(("/parameters", value) for value in wanted.parameters.values()),
    ]
    for pointer, text in requested:
        try:
            is_own = public_url is not None and is_of_gateway(text, public_url)
            is_sent_elsewhere = is_own and not all(is_of_gateway(origin, public_url or "") for origin in wanted.origins)
        except ValueError:
            continue  # no URL
        if is_sent_elsewhere and wanted.kind is not CredentialKind.ASSERTION:  # guard: delegated-for-gateway
            reason = "must not be a URL of the gateway, because the origins would receive a token that is valid at it"
            raise refusal(pointer, reason)


async def _find_account(tenant: TenantId, catalog: CatalogContext, wanted: StoredCredential) -> CredentialStatus:
    """The endpoints of user accounts: those of the server's metadata, or those of the request."""
    if catalog.options.public_url is None:  # guard: account-public-url
        raise refusal("/kind", "users connect accounts at the gateway's public URL: set GATEWAY_PUBLIC_URL")
    if reserved := sorted(wanted.parameters.keys() & RESERVED):  # guard: account-parameters
        raise refusal("/parameters", f"the gateway sets {', '.join(reserved)} itself")
    metadata: Mapping[str, Any] = {}
    urls: dict[str, Any] = {each: getattr(wanted, each) for each in ENDPOINTS}
    if wanted.server is not None:
        if any(urls.values()):
            raise refusal("/server", "has the endpoints in its metadata; omit either the server or the endpoints")
        try:
            metadata = await fetch_metadata(catalog.upstream, tenant, wanted.server)
        except GatewayError as error:
            raise refusal("/server", error.message) from None
        urls = {each: _text(metadata.get(f"{each.removesuffix('_url')}_endpoint")) for each in ENDPOINTS}
    for each, url in urls.items():
        pointer = f"/{each}" if wanted.server is None else "/server"
        if url is not None:
            await require_tls(tenant, catalog, url, pointer)  # guard: account-endpoints-tls
        elif each != "revocation_url":
            raise refusal(pointer, f"required: give `server`, whose metadata has it, or `{each}`")
    names_issuer = metadata.get("authorization_response_iss_parameter_supported") is True
    return CredentialStatus(**urls, names_issuer=names_issuer)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
