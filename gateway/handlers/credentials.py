"""Stored credentials of requests, and the normalized origins (scheme, host and port) that a request may be sent to."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from msgspec.structs import replace

from gateway.domain.http.plans import SchemeKind, SchemePlan
from gateway.domain.http.requests import NamedCredential, UpstreamRequest
from gateway.domain.identifiers import TenantId
from gateway.errors import CredentialMissing
from gateway.handlers.interfaces import SecretReader
from gateway.upstream.auth.credentials import apply

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
        CredentialMissing: this version does not know the position, the value cannot be sent there, or the credential
            has to name a caller.
    """
    kind = _KINDS.get(named.place)
    if kind is None:
        raise CredentialMissing("The location of the credential in the request is unknown to this version.")
    if named.delegation is not None:  # guard: delegation-without-caller
        raise CredentialMissing(f"The credential {named.name!r} names the caller, and this request has none.")
    scheme = SchemePlan(name="credential", kind=kind, field=named.field)
    applied = apply(request, ((scheme,),), {"credential": named.credential})
    return applied if named.digest is None else replace(applied, credential=named.digest)


async def find_named(secrets: SecretReader, tenant: TenantId, name: str, url: str) -> NamedCredential:
    """Return the tenant's credential of this name for a request to this URL.

    Raises:
        CredentialMissing: it is not stored, or not for this origin.
    """
    named = await secrets.named(tenant, name)
    if named is None:
        raise CredentialMissing(f"The credential {name!r} is not stored.")
    if not is_among(url, named.origins):  # guard: named-credential-origin
        raise CredentialMissing(f"The credential {name!r} was not stored for the origin of this request.")
    return named


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
