"""One connection, its transport replaced: whatever the pieces in which bytes come, they mean the same."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.upstream.egress.origins import PoolKey
from gateway.upstream.http.connection import Connection, reusable_below
from gateway.upstream.http.errors import BrokenOff, Disconnected, Malformed, TransportFault
from gateway.upstream.http.response import Response


class Transport(asyncio.Transport):
    """Sends into a list."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed = False
        self.is_paused = False
        self.unsent = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Remember it."""
        self.sent.append(bytes(data))

    def abort(self) -> None:
        """Remember it."""
        self.closed = True

    def get_write_buffer_size(self) -> int:
        """Nothing, unless a test wants some."""
        return self.unsent

    def is_closing(self) -> bool:
        """True if it was closed."""
        return self.closed

    def pause_reading(self) -> None:
        """Remember it."""
        self.is_paused = True

    def resume_reading(self) -> None:
        """Remember it."""
        self.is_paused = False


class Owner:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.kept: list[Connection] = []

    def keep(self, connection: Connection) -> None:
        """Remember it."""
        self.kept.append(connection)

    def forget(self, connection: Connection) -> None:
        """Nothing to forget."""


class Bench:
    """A connection that has sent a request."""

    def __init__(self, content: bytes | None = None, *, is_head: bool = False) -> None:
        self.loop = asyncio.new_event_loop()
        self.owner, self.transport = Owner(), Transport()
        self.connection = Connection(self.owner, PoolKey("acme", "http://h:80", b""))
        self.connection.connection_made(self.transport)
        self.answer: Response = self.connection.ask(b"HEAD", content, self.loop.create_future(), is_head=is_head)

    def read(self, *pieces: bytes, ends: bool = False) -> tuple[int, object, bytes | type[TransportFault], bool]:
        """Status, headers, the body or why there is none, and whether the connection was kept."""
        for piece in pieces:
            self.connection.data_received(piece)
        if ends:
            self.connection.eof_received()
            self.connection.connection_lost(None)
        self.loop.close()
        try:
            content = self.answer.take()
        except TransportFault as fault:
            return self.answer.status, (), type(fault), False
        assert self.answer.at_eof()
        self.answer.release()
        return self.answer.status, self.answer.headers(), content, self.owner.kept == [self.connection]


_TEXT = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)
_FIELDS = st.lists(_TEXT.map(lambda value: f"X-Field: {value}\r\n".encode()), max_size=5)
_BODIES = st.binary(max_size=200)


def _chunks(pieces: list[bytes], extension: bytes, trailer: bytes) -> bytes:
    return b"".join(b"%x%s\r\n%s\r\n" % (len(p), extension, p) for p in pieces if p) + b"0\r\n" + trailer + b"\r\n"


@st.composite
def answers(draw: st.DrawFn) -> tuple[bytes, bytes, int, bool]:
    """An answer, its body, its status, and whether it ends with the connection."""
    status = draw(st.sampled_from([200, 201, 302, 404, 503]))
    head = draw(st.sampled_from([b"", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"]))
    head += b"HTTP/1.1 %d Some reason\r\n" % status + b"".join(draw(_FIELDS))
    framing = draw(st.sampled_from(["length", "chunked", "close"]))
    if framing == "chunked":
        pieces = draw(st.lists(_BODIES, max_size=5))
        extension, trailer = draw(st.sampled_from([b"", b";a=b"])), draw(st.sampled_from([b"", b"T: v\r\n"]))
        raw = head + b"Transfer-Encoding: chunked\r\n\r\n" + _chunks(pieces, extension, trailer)
        return raw, b"".join(pieces), status, False
    content = draw(_BODIES)
    if framing == "close":
        return head + b"\r\n" + content, content, status, True
    return head + b"Content-Length: %d\r\n\r\n" % len(content) + content, content, status, False


@given(answers(), st.lists(st.floats(0, 1), max_size=8))
def test_an_answer_means_the_same_however_it_is_cut(answer: tuple[bytes, bytes, int, bool], cuts: list[float]) -> None:
    """RFC 9112 section 2.2: HTTP is a stream of bytes."""
    raw, content, status, ends = answer
    points = sorted({0, len(raw), *(int(cut * len(raw)) for cut in cuts)})
    pieces = [raw[start:end] for start, end in pairwise(points)]

    whole, cut = Bench().read(raw, ends=ends), Bench().read(*pieces, ends=ends)

    assert cut == whole
    assert (whole[0], whole[2], whole[3]) == (status, content, not ends)


@given(answers(), st.floats(0, 1, exclude_max=True))
def test_an_answer_that_ends_early_is_never_whole(answer: tuple[bytes, bytes, int, bool], cut: float) -> None:
    """RFC 9112 section 8: unless its end is that of the connection."""
    raw, content, _, ends = answer
    begun = raw[: int(cut * len(raw))]

    status, _, read, kept = Bench().read(begun, ends=True)

    assert not kept
    if ends and status:
        assert isinstance(read, bytes)
        assert content.startswith(read)
    else:
        assert read is (BrokenOff if status else Disconnected)


@given(st.binary(max_size=300))
def test_every_input_is_an_answer_or_a_fault(noise: bytes) -> None:
    """Ours: no bytes make the client fail in another way."""
    for raw in (
        noise,
        b"HTTP/1.1 200 OK\r\n" + noise,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + noise,
    ):
        _, _, read, kept = Bench().read(raw, ends=True)

        assert not kept
        assert isinstance(read, bytes) or read in (BrokenOff, Disconnected, Malformed)


def test_reading_stops_without_a_reader() -> None:
    """Ours: and continues as soon as there is one."""
    bench = Bench()
    bench.connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + b"x" * 65536)
    assert not bench.transport.is_paused
    bench.connection.data_received(b"x")
    assert bench.transport.is_paused
    assert bench.answer.take() == b"x" * 65537
    assert not bench.transport.is_paused
    bench.loop.close()


def test_a_large_body_is_written_as_the_other_side_takes_it() -> None:
    """Ours: it is not copied whole into the transport."""
    content = bytes(range(256)) * 1024
    quick, slow = Bench(content), Bench()
    slow.connection.data_received(b"HTTP/1.1 204 X\r\n\r\n")
    slow.answer.release()
    slow.connection.pause_writing()
    slow.connection.ask(b"HEAD", content, slow.loop.create_future(), is_head=False)
    sent = slow.transport.sent[1:]
    slow.connection.resume_writing()
    for bench in (quick, slow):
        bench.loop.close()

    assert quick.transport.sent == [b"HEAD", *(content[at : at + 65536] for at in range(0, len(content), 65536))]
    assert sent == [b"HEAD"]
    assert slow.transport.sent[1:] == quick.transport.sent


@pytest.mark.parametrize(
    ("method", "body", "status", "kept"),
    [
        ("GET", None, 500, True),
        ("GET", b"", 200, True),
        ("POST", b'{"a":1}', 200, True),
        ("PUT", b'{"a":1}', 302, True),
        ("POST", b'{"a":1}', 400, False),
        ("PATCH", b'{"a":1}', 500, False),
        ("POST", b"a\nb", 200, False),
        ("POST", b"a\rb", 200, False),
        ("DELETE", b'{"a":1}', 200, False),
        *((method, b"x", 200, False) for method in ("GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "PURGE")),
    ],
)
def test_a_connection_whose_body_may_be_unread_is_closed(
    method: str, body: bytes | None, status: int, kept: bool
) -> None:
    """ISO-1: an unread body with a line end could be a head; methods without a body and errors leave it unread."""
    assert (status < reusable_below(method, body)) is kept


def test_a_response_before_the_end_of_the_request_closes_the_connection() -> None:
    """RFC 9112 section 9.3: an unsent part cannot be distinguished from the next request."""
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    early, late = Bench(b"{}"), Bench(b"{}")
    early.transport.unsent = 1

    assert early.read(raw)[-1] is False
    assert late.read(raw)[-1] is True


def test_a_connection_released_inside_its_response_is_closed() -> None:
    """ISO-1: the rest of the response would be read as the next one."""
    bench = Bench()
    bench.connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
    bench.loop.close()
    bench.answer.release()

    assert (bench.owner.kept, bench.transport.closed) == ([], True)
