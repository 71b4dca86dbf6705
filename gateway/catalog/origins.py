"""Origins in requests: scheme, host and port, normalised to the form in which they are compared."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from gateway.errors import Fault, InvalidBody
from gateway.openapi.document.json_access import Unusable
from gateway.openapi.operation.servers import parse_server


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
            reason = (
                "must be an origin such as https://api.example.com: scheme, host and optionally a port, without a path"
            )
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
