"""Memo of a call's completed actions, for a call that restarts after the client's answer.

In 2026-07-28 a question ends the request, and the answer arrives with a new one. Results of non-repeatable actions
before the question are looked up here. The client holds them meanwhile, sealed, so their size is limited.
"""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec

from gateway.errors import HandlerFailed, UpstreamError
from gateway.handlers.interfaces import Peer

_LARGEST = 8 * 1024
_LARGEST_SUM = 32 * 1024


class CallMemo:
    """The stored results of one call of one handler."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._left = _LARGEST_SUM

    async def once(self, key: str, act: Callable[[], Awaitable[Any]], *, repeatable: bool) -> Any:
        """Return the result of the action, a JSON value, from now or from an earlier round of this call.

        A result that is too large to store is computed again if the action is repeatable, otherwise it is lost.

        Raises:
            HandlerFailed: the action ran, its result could not be stored, and it may not run again.
            UpstreamError: the action failed, now or in an earlier round, after an unknown part of its work.
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
