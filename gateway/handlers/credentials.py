"""Stored credentials of requests, and the normalized origins (scheme, host and port) that a request may be sent to."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from gateway.domain.http.plans import SchemeKind, SchemePlan
from gateway.domain.http.requests import NamedCredential, UpstreamRequest
from gateway.errors import CredentialMissing
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
        CredentialMissing: this version does not know the position, or the value cannot be sent there.
    """
    kind = _KINDS.get(named.place)
    if kind is None:
        raise CredentialMissing("This version does not know the location of the credential in the request.")
    scheme = SchemePlan(name="credential", kind=kind, field=named.field)
    return apply(request, ((scheme,),), {"credential": named.credential})


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
