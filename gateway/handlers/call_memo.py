"""What a call has already done, for the case that it is run again from its start when the client has answered.

In 2026-07-28 a question ends the request, and the answer comes with a new one. What was done before the question and
may not be done twice is looked up here instead; the client carries it meanwhile, sealed, so it is kept small.
"""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec

from gateway.errors import HandlerFailed, UpstreamError
from gateway.handlers.interfaces import Peer

_LARGEST = 8 * 1024
_LARGEST_SUM = 32 * 1024


class CallMemo:
    """What one call of one handler remembers."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._left = _LARGEST_SUM

    async def once(self, key: str, act: Callable[[], Awaitable[Any]], *, repeatable: bool) -> Any:
        """What the act answered, a JSON value, now or in an earlier round of this call.

        An answer that is too large to be kept is asked for again when the act is repeatable, else it is lost.

        Raises:
            HandlerFailed: the act was done, its answer could not be kept, and it may not be done again.
            UpstreamError: it failed, now or in an earlier round, and nobody knows how far it had come.
        """
        kept = self._peer.recall(key)
        if isinstance(kept, dict):
            return self._recalled(cast("dict[str, Any]", kept))
        try:
            value = await act()
        except UpstreamError as error:
            if not repeatable:
                self._peer.remember(key, {"failed": error.message})
            raise
        self._keep(key, value, repeatable=repeatable)
        return value

    def _recalled(self, kept: dict[str, Any]) -> Any:
        if "failed" in kept:
            raise UpstreamError(str(kept["failed"]))
        if "value" not in kept:
            raise HandlerFailed("an answer was too large to be kept while the client was asked")
        self._left -= _size(kept)
        return kept["value"]

    def _keep(self, key: str, value: Any, *, repeatable: bool) -> None:
        kept: dict[str, Any] = {"value": value}
        size = _size(kept)
        if size <= min(_LARGEST, self._left):
            self._left -= size
            self._peer.remember(key, kept)
        elif not repeatable:
            self._peer.remember(key, {})


def _size(value: object) -> int:
    try:
        return len(msgspec.json.encode(value))
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError):
        return _LARGEST_SUM + 1
