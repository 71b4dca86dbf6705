"""Where a source's calls go, and that credentials stored for one place do not follow them to another unseen.

Stored credentials can be written and never read. Whoever may change a source could still have them sent to a host of
their own; so a change of hosts asks for the credentials again.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec

from gateway.domain.http.plans import RequestPlan
from gateway.domain.identifiers import SourceId
from gateway.domain.sources import Compilation, Source
from gateway.domain.tools import Tool
from gateway.errors import Fault, InvalidBody


@dataclass(frozen=True, slots=True, kw_only=True)
class _TokenScheme:
    """The part of a security scheme that says where a client secret is taken to."""

    token_url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Destination:
    """The part of a request plan that says where."""

    origin: str
    security: tuple[tuple[_TokenScheme, ...], ...] = ()


_place_of = msgspec.json.Decoder(_Destination).decode


def stored_origins(tools: Iterable[Tool], source: SourceId) -> frozenset[str]:
    """Scheme, host and port of every place that the source's calls and credentials go to now."""
    places = (_place_of(tool.plan) for tool in tools if tool.source == source)
    return frozenset(origin for place in places for origin in _origins(place))


def _origins(place: _Destination | RequestPlan) -> Iterator[str]:
    yield place.origin
    for way in place.security:
        for scheme in way:
            if scheme.token_url is not None:
                parts = urlsplit(scheme.token_url)
                yield f"{parts.scheme}://{parts.netloc}"


def check_destinations(current: Source, before: frozenset[str], compilation: Compilation) -> None:
    """Let a source with stored credentials go on to the places it went to before.

    Raises:
        InvalidBody: it would send to others; `credentials` has to say what they are to be given.
    """
    after = {origin for operation in compilation.operations for origin in _origins(operation.plan)}
    added = sorted(after - before)
    if not current.schemes or not added:
        return
    reason = f"calls would go to {', '.join(added[:3])}, where the stored credentials were not meant for"
    fault = Fault(pointer="/credentials", reason=f"{reason}; send them again, or an empty object to go without")
    raise InvalidBody(f"credentials: {fault.reason}", faults=[fault])
