"""Scope of a source's credentials: an update that adds origins must send the credentials again.

The API never returns stored credentials. Without this rule, a caller that may change a source could redirect them to
its own host.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from gateway.catalog.kinds.engines.kept_secrets import refuse_moved_secret
from gateway.domain.http.plans import RequestPlan
from gateway.domain.identifiers import SourceId
from gateway.domain.members.markers import Shape
from gateway.domain.sources import Compilation, Source
from gateway.domain.tools import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class _TokenScheme:
    """The part of a security scheme that names the receiver of a client secret."""

    token_url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Destination:
    """The part of a request plan that names the receivers of its requests and secrets."""

    origin: str
    security: tuple[tuple[_TokenScheme, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Receivers:
    """The origins that receive the secrets of a source."""

    origins: Annotated[frozenset[str], Shape.RECEIVER]


_decode_destination = msgspec.json.Decoder(_Destination).decode


def stored_origins(tools: Iterable[Tool], source: SourceId) -> frozenset[str]:
    """Origins (scheme, host and port) that receive the source's calls and credentials at present."""
    destinations = (_decode_destination(tool.plan) for tool in tools if tool.source == source)
    return frozenset(origin for destination in destinations for origin in _origins(destination))


def _origins(destination: _Destination | RequestPlan) -> Iterator[str]:
    yield destination.origin
    for alternative in destination.security:
        for scheme in alternative:
            if scheme.token_url is not None:
                parts = urlsplit(scheme.token_url)
                yield f"{parts.scheme}://{parts.netloc}"


def check_destinations(current: Source, before: frozenset[str], compilation: Compilation) -> None:
    """Refuse new origins for a source with stored credentials, unless the credentials are sent again.

    Raises:
        SecretNotKept: calls would go to new origins; the request must contain `credentials`.
    """
    after = frozenset(origin for operation in compilation.operations for origin in _origins(operation.plan))
    if not current.schemes:  # guard: credential-destination
        return
    added = ", ".join(sorted(after - before)[:3])
    remedy = f"the update adds {added}; send `credentials` again, or an empty object to call without them"
    names = {"origins": "credentials"}
    refuse_moved_secret(_Receivers(origins=before), _Receivers(origins=after), remedy=remedy, names=names)
