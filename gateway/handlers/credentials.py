"""Stored credentials of requests, and the normalized origins (scheme, host and port) that a request may be sent to."""

import math
from collections.abc import Iterable
from contextlib import suppress
from urllib.parse import urlsplit

from msgspec.structs import replace

from gateway.domain.http.plans import SchemeKind, SchemePlan
from gateway.domain.http.requests import NamedCredential, UpstreamRequest
from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import AccountRequired
from gateway.errors import ClientSilent, CredentialMissing
from gateway.handlers.interfaces import Call, InputRequest, Peer, SecretReader
from gateway.upstream.auth.credentials import apply
from gateway.upstream.auth.delegation import Delegations

_CONNECT = "gateway/connect/"
"""Prefix of the keys of client requests that open an account's page."""
_DEFAULT_PORTS = {"http": 80, "https": 443}
_KINDS = {
    "header": SchemeKind.API_KEY_HEADER,
    "query": SchemeKind.API_KEY_QUERY,
    "bearer": SchemeKind.BEARER,
    "basic": SchemeKind.BASIC,
}


def with_credential(request: UpstreamRequest, named: NamedCredential) -> UpstreamRequest:
    """Return the request with the credential applied. The caller checks that its origin is allowed.

    Raises:
        CredentialMissing: the position is unknown to this version, the value cannot be sent there, or the credential
            requires a caller.
    """
    kind = _KINDS.get(named.place)
    if kind is None:
        raise CredentialMissing("The location of the credential in the request is unknown to this version.")
    if named.delegation is not None:  # guard: delegation-without-caller
        raise CredentialMissing(f"The credential {named.name!r} names the caller, but this request has no caller.")
    scheme = SchemePlan(name="credential", kind=kind, field=named.field)
    applied = apply(request, ((scheme,),), {"credential": named.credential})
    return applied if named.digest is None else replace(applied, credential=named.digest)


async def find_named(secrets: SecretReader, tenant: TenantId, name: str, url: str) -> NamedCredential:
    """Return the tenant's credential of this name for a request to this URL.

    Raises:
        CredentialMissing: the credential does not exist, or is not stored for this origin.
    """
    named = await secrets.named(tenant, name)
    if named is None:
        raise CredentialMissing(f"The credential {name!r} is not stored.")
    if not is_among(url, named.origins):  # guard: named-credential-origin
        raise CredentialMissing(f"The credential {name!r} was not stored for the origin of this request.")
    return named


async def of_caller(delegations: Delegations, named: NamedCredential, call: Call) -> NamedCredential:
    """Return the credential of the caller.

    If no account is connected, a client that can open pages receives the page that connects one.

    Raises:
        InputRequired: the client has to open the page first.
        AccountRequired: no account is connected, and the client cannot open the page or has already opened it.
        CredentialMissing, TokenRefused, UpstreamError: see `Delegations.resolve`.
    """
    try:
        return await delegations.resolve(named, call.principal, call.action)
    except AccountRequired as required:
        await ask_to_connect(call.peer, required)
        raise


async def ask_to_connect(peer: Peer, required: AccountRequired) -> None:
    """Send the user of a 2026-07-28 client to the page that connects the account; once per call.

    In a session, the error itself contains the page (-32042), so no request waits for a person.

    Raises:
        InputRequired: the client has to open the page and then call again.
    """
    is_session = 0 < peer.approval_timeout_s < math.inf
    if is_session or not peer.can("elicitation.url"):
        return
    message = f"Connect your account for {required.credential!r} at this gateway; then the call continues."
    params = {"mode": "url", "message": message, "url": required.url}
    with suppress(ClientSilent):
        await peer.ask({f"{_CONNECT}{required.credential}": InputRequest(kind="elicitation", params=params)})


def origin_of(url: str) -> str:
    """Return the origin of an absolute http(s) URL: lower case, without the default port; empty for other URLs."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return ""
    if parts.scheme not in _DEFAULT_PORTS or not host:
        return ""
    shown = f"[{host}]" if ":" in host else host.rstrip(".")
    return f"{parts.scheme}://{shown}" + ("" if port in {None, _DEFAULT_PORTS[parts.scheme]} else f":{port}")


def is_among(url: str, origins: Iterable[str]) -> bool:
    """True if the URL has one of these origins."""
    wanted = origin_of(url)
    return bool(wanted) and any(origin_of(origin) == wanted for origin in origins)
