"""The header fields of a request, read once: a request is looked at by many who each want one or two of them."""

from collections import Counter
from collections.abc import MutableMapping
from itertools import chain
from typing import Any, Final

_KEPT: Final = "gateway.fields"


class HeaderIndex:
    """Fields by lower-case name; of one that is repeated the first."""

    __slots__ = ("count", "get", "repeated", "text")

    def __init__(self, headers: list[tuple[bytes, bytes]]) -> None:
        first = dict(reversed(headers))
        self.get = first.get
        self.count = len(headers)
        self.text = b"".join(chain.from_iterable(headers))
        """All names and values, to see at once that none has something in it."""
        self.repeated: frozenset[bytes] = frozenset() if len(first) == len(headers) else _repeated(headers)
        """The names that stand more than once."""


def headers_of(scope: MutableMapping[str, Any]) -> HeaderIndex:
    """The fields of the request with this ASGI scope."""
    kept: HeaderIndex | None = scope.get(_KEPT)
    if kept is None:
        kept = scope[_KEPT] = HeaderIndex(scope["headers"])
    return kept


def _repeated(headers: list[tuple[bytes, bytes]]) -> frozenset[bytes]:
    return frozenset(name for name, count in Counter(name for name, _ in headers).items() if count > 1)
