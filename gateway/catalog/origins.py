"""Origins in requests: scheme, host and port, normalised to the form in which they are compared; and URLs with TLS."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.errors import EgressDenied, Fault, InvalidBody
from gateway.openapi.document.json_access import Unusable
from gateway.openapi.operation.servers import parse_server
from gateway.upstream.egress.addresses import read_address


def read_origins(given: Sequence[str], *, pointer: str) -> tuple[str, ...]:
    """The origins in lower case, without default ports, sorted, without duplicates.

    Raises:
        InvalidBody: an entry is not an origin; the fault points at it below `pointer`.
    """
    origins: set[str] = set()
    faults: list[Fault] = []
    for position, text in enumerate(given):
        origin = find_origin(text)
        if origin is None or urlsplit(text).path not in {"", "/"} or "?" in text or "#" in text:
            reason = "must be an origin such as https://api.example.com: scheme, host and maybe a port, no path"
            faults.append(Fault(pointer=f"{pointer}/{position}", reason=reason))
        else:
            origins.add(origin)
    if faults:
        raise InvalidBody(f"{faults[0].pointer}: {faults[0].reason}", faults=faults)
    return tuple(sorted(origins))


def find_origin(url: str) -> str | None:
    """Scheme, host and port of an absolute http or https URL; None for anything else."""
    try:
        return parse_server(url).origin
    except Unusable:
        return None


async def require_tls(tenant: TenantId, catalog: CatalogContext, url: str, pointer: str) -> None:
    """Refuse a URL without TLS, unless the operator's or the tenant's list has its host and port.

    Raises:
        InvalidBody: it is no absolute URL, or neither https nor permitted; the fault has this pointer.
    """
    if find_origin(url) is None:
        raise refusal(pointer, "must be an absolute https URL")
    parts = urlsplit(url)
    if parts.scheme == "https":
        return
    host = (parts.hostname or "").lower()
    try:
        entry = (read_address(host) or host, parts.port or 80)
        await catalog.upstream.check_listed(entry, tenant=tenant)  # guard: url-tls
    except EgressDenied:
        raise refusal(pointer, "must be https; http is for hosts that the operator permits") from None


def refusal(pointer: str, reason: str) -> InvalidBody:
    """Return the error for one invalid member."""
    return InvalidBody(f"{pointer or 'the body'}: {reason}", faults=[Fault(pointer=pointer, reason=reason)])
