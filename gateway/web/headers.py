"""Header index of a request, built once per request, because many components look up one or two headers."""

from collections import Counter
from collections.abc import MutableMapping
from itertools import chain
from typing import Any, Final

_SCOPE_KEY: Final = "gateway.fields"


class HeaderIndex:
    """Headers by lower-case name; a repeated header has its first value."""

    __slots__ = ("count", "get", "raw", "repeated", "text")

    def __init__(self, headers: list[tuple[bytes, bytes]]) -> None:
        self.raw = headers
        first = dict(reversed(headers))
        self.get = first.get
        self.count = len(headers)
        self.text = b"".join(chain.from_iterable(headers))
        """All names and values, joined to measure them at once."""
        self.repeated: frozenset[bytes] = frozenset() if len(first) == len(headers) else _repeated(headers)
        """The names that occur more than once."""


def headers_of(scope: MutableMapping[str, Any]) -> HeaderIndex:
    """Return the header index of this ASGI scope."""
    kept: HeaderIndex | None = scope.get(_SCOPE_KEY)
    if kept is None:
        kept = scope[_SCOPE_KEY] = HeaderIndex(scope["headers"])
    return kept


def _repeated(headers: list[tuple[bytes, bytes]]) -> frozenset[bytes]:
    return frozenset(name for name, count in Counter(name for name, _ in headers).items() if count > 1)
