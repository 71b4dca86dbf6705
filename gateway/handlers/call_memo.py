"""Memo of a call's completed actions, for a call that restarts with the client's response.

In protocol revision 2026-07-28, a request to the client ends the current round of a call. The client's response arrives
with a new request, which restarts the call. The restarted call reads the results of completed actions from the memo.
Between the rounds, the client stores the sealed memo, so its size is limited.
"""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec

from gateway.errors import HandlerFailed, UpstreamError
from gateway.handlers.interfaces import Peer
from gateway.handlers.limits import MAX_MEMO_BYTES, MAX_MEMO_ENTRY_BYTES


class CallMemo:
    """The stored results of one call of one handler."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._left = MAX_MEMO_BYTES

    async def once(self, key: str, act: Callable[[], Awaitable[Any]], *, repeatable: bool) -> Any:
        """Return the action's result, a JSON value. A result stored in an earlier round is returned without running it.

        If a result was too large to store, the next round runs a repeatable action again.

        Raises:
            HandlerFailed: the action ran earlier, its result was not stored, and it is not repeatable.
            UpstreamError: the action failed now, or is not repeatable and failed in an earlier round.
        """
        kept = self._peer.recall(key)
        if isinstance(kept, dict):  # guard: rounds-once
            return self._read_entry(cast("dict[str, Any]", kept))
        try:
            value = await act()
        except UpstreamError as error:
            if not repeatable:
                self._peer.remember(key, {"failed": error.message})
            raise
        self._store_entry(key, value, repeatable=repeatable)
        return value

    def _read_entry(self, kept: dict[str, Any]) -> Any:
        if "failed" in kept:
            raise UpstreamError(str(kept["failed"]))
        if "value" not in kept:
            raise HandlerFailed("a result is too large to store until the client has responded")
        self._left -= _size(kept)
        return kept["value"]

    def _store_entry(self, key: str, value: Any, *, repeatable: bool) -> None:
        kept: dict[str, Any] = {"value": value}
        size = _size(kept)
        if size <= min(MAX_MEMO_ENTRY_BYTES, self._left):
            self._left -= size
            self._peer.remember(key, kept)
        elif not repeatable:  # guard: rounds-lost
            self._peer.remember(key, {})


def _size(value: object) -> int:
    try:
        return len(msgspec.json.encode(value))
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError):
        return MAX_MEMO_BYTES + 1
