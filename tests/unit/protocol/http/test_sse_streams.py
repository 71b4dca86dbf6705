"""Waiting of an open stream: kept alive whenever it was silent for long enough, woken at once."""

from starlette.types import Message

from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.tenancy.principals import Principal
from gateway.protocol.http.sse_encoding import PING
from gateway.protocol.http.sse_streams import EventStream

READER = Principal(tenant=TenantId("ten_1"), slug="acme", key=KeyId("key_1"), subject="s", scopes=frozenset())

RESTS = 300
"""So many that some alarm is a moment early: those of the event loop are set to whole milliseconds."""


class _Wire:
    """Messages to a silent client."""

    def __init__(self, keep_alive_s: float = 0.0052) -> None:
        self.sent: list[bytes] = []
        self.stream = EventStream(self._send, READER, keep_alive_s=keep_alive_s)

    async def _send(self, message: Message) -> None:
        self.sent.append(message["body"])


async def test_every_silence_is_broken_by_a_comment_even_when_its_alarm_is_early() -> None:
    """Ours: an unfinished rest ends with a comment, so the next event never takes its place (SRV-1)."""
    wire = _Wire()

    woken = [await wire.stream.wait() for _ in range(RESTS)]

    assert not any(woken)
    assert wire.sent == [PING] * RESTS


async def test_a_shorter_pause_sends_nothing() -> None:
    """Ours: frequent checks send no more keep-alives (SRV-1)."""
    wire = _Wire(keep_alive_s=60)

    woken = [await wire.stream.wait(0.001) for _ in range(10)]

    assert not any(woken)
    assert wire.sent == []


async def test_a_woken_stream_sends_no_comment() -> None:
    """Ours: being woken ends the rest, before it begins as well (SRV-1)."""
    wire = _Wire()
    wire.stream.wake()

    assert await wire.stream.wait()
    assert wire.sent == []
