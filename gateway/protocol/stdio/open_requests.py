"""The open requests of one client on standard streams, limited in number, each with a unique id."""

from collections.abc import Iterator
from typing import Generic, TypeVar

import anyio

from gateway.protocol.stdio.limits import MAX_OPEN
from gateway.protocol.stdio.messages import Message, id_of, refuse_more, refuse_repeated_id

_Request = TypeVar("_Request")


class OpenRequests(Generic[_Request]):
    """Open requests by id. JSON's 7 and "7" count as one id, as they do for the SDK's cancellation."""

    def __init__(self) -> None:
        self._requests: dict[str, _Request] = {}
        self._changed = anyio.Event()

    def __iter__(self) -> Iterator[_Request]:
        """The requests that are open now."""
        return iter(tuple(self._requests.values()))

    def add(self, message: Message, request: _Request) -> None:
        """Add the request in a message.

        Raises:
            Refused: its id is in use, or too many requests are open.
        """
        request_id = str(id_of(message))
        if request_id in self._requests:  # guard: stdio-one-id
            raise refuse_repeated_id(message)
        if len(self._requests) >= MAX_OPEN:  # guard: stdio-concurrency
            raise refuse_more(message)
        self._requests[request_id] = request

    def find(self, request_id: str | int | None) -> _Request | None:
        """The open request with this id."""
        return self._requests.get(str(request_id))

    def replace(self, request_id: str | int, request: _Request) -> None:
        """Replace an open request; do nothing if it was removed."""
        if str(request_id) in self._requests:
            self._requests[str(request_id)] = request

    def remove(self, request_id: str | int) -> _Request | None:
        """Remove and return a request that has its response, or was cancelled."""
        removed = self._requests.pop(str(request_id), None)
        self._changed.set()
        return removed

    async def wait_empty(self) -> None:
        """Return when no request is open."""
        while self._requests:
            self._changed = anyio.Event()
            await self._changed.wait()
