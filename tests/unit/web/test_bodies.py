"""Accepted bodies, and their meaning."""

from collections.abc import Sequence

import anyio
import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from gateway.errors import DocumentTooLarge, InvalidBody
from gateway.web.bodies import declared_length, read_body


def _arriving(*parts: Message) -> Receive:
    messages = list(parts)

    async def receive() -> Message:
        return messages.pop(0)

    return receive


def _part(body: bytes, *, more: bool = False) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


async def test_a_body_in_parts_is_put_together() -> None:
    """ASGI: a body may come in any number of messages, some of them empty."""
    receive = _arriving(_part(b"", more=True), _part(b"ab", more=True), _part(b"c"))

    assert await read_body(receive, limit=3, deadline=1) == b"abc"


async def test_a_message_without_members_is_an_empty_body() -> None:
    """ASGI: `body` and `more_body` have defaults."""
    assert await read_body(_arriving({"type": "http.request"}), limit=0, deadline=1) == b""


async def test_a_body_beyond_the_limit_is_refused_before_the_rest_is_read() -> None:
    """Ours: a read never exceeds the limit by more than one message."""
    unread = _part(b"never asked for")
    messages: list[Message] = [_part(b"abc", more=True), _part(b"d", more=True), unread]

    async def receive() -> Message:
        return messages.pop(0)

    with pytest.raises(DocumentTooLarge, match="3 bytes"):
        await read_body(receive, limit=3, deadline=1)
    assert messages == [unread]


async def test_a_declared_length_beyond_the_limit_is_refused_unread() -> None:
    """Ours: a declared length above the limit is believed."""
    with pytest.raises(DocumentTooLarge):
        await read_body(_arriving(), limit=3, deadline=1, declared=4)


async def test_a_body_that_does_not_come_is_refused() -> None:
    """Ours: no read waits without end."""

    async def receive() -> Message:
        await anyio.sleep_forever()
        raise AssertionError

    with pytest.raises(InvalidBody, match="did not arrive"):
        await read_body(receive, limit=3, deadline=0.01)


async def test_the_deadline_is_for_the_whole_body() -> None:
    """Ours: a byte now and then does not extend the time."""

    async def receive() -> Message:
        await anyio.sleep(0.01)
        return _part(b"a", more=True)

    with anyio.fail_after(30), pytest.raises(InvalidBody, match="did not arrive"):
        await read_body(receive, limit=10_000, deadline=0.1)


async def test_a_client_that_leaves_ends_the_reading() -> None:
    """ASGI: a disconnect in the middle of a body is no end of the body."""
    with pytest.raises(ClientDisconnect):
        await read_body(_arriving(_part(b"ab", more=True), {"type": "http.disconnect"}), limit=9, deadline=1)


async def test_reading_can_be_cancelled() -> None:
    """Ours: a wait for a body ends with its waiter, and leaves nothing behind."""
    ended = anyio.Event()

    async def receive() -> Message:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError

    with anyio.move_on_after(0.01):
        await read_body(receive, limit=3, deadline=100)
    assert ended.is_set()


@pytest.mark.parametrize(
    ("headers", "expected"),
    [([], None), ([(b"content-length", b"12")], 12), ([(b"content-length", b"-1")], None)],
)
def test_the_declared_length_is_a_number_or_nothing(
    headers: Sequence[tuple[bytes, bytes]], expected: int | None
) -> None:
    """Ours: only digits are a length."""
    assert declared_length({"headers": headers}) == expected
