"""One connection, its transport replaced: whatever the pieces in which bytes come, they mean the same."""

import asyncio
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gateway.upstream.answers import Answer
from gateway.upstream.faults import BrokenOff, Disconnected, Fault, Malformed
from gateway.upstream.http1 import Connection


class Transport(asyncio.Transport):
    """Sends into a list."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed = False
        self.is_paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Remember it."""
        self.sent.append(bytes(data))

    def abort(self) -> None:
        """Remember it."""
        self.closed = True

    def is_closing(self) -> bool:
        """Whether it was closed."""
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
        self.connection = Connection(self.owner, "http://h:80")
        self.connection.connection_made(self.transport)
        self.answer: Answer = self.connection.ask(b"HEAD", content, self.loop.create_future(), is_head=is_head)

    def read(self, *pieces: bytes, ends: bool = False) -> tuple[int, object, bytes | type[Fault], bool]:
        """Status, headers, the body or why there is none, and whether the connection was kept."""
        for piece in pieces:
            self.connection.data_received(piece)
        if ends:
            self.connection.eof_received()
            self.connection.connection_lost(None)
        self.loop.close()
        try:
            content = self.answer.take()
        except Fault as fault:
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
def test_whatever_comes_is_an_answer_or_a_fault(noise: bytes) -> None:
    """Ours: no bytes make the client fail in another way."""
    for raw in (
        noise,
        b"HTTP/1.1 200 OK\r\n" + noise,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + noise,
    ):
        _, _, read, kept = Bench().read(raw, ends=True)

        assert not kept
        assert isinstance(read, bytes) or read in (BrokenOff, Disconnected, Malformed)


def test_reading_stops_while_nobody_takes_what_is_there() -> None:
    """Ours: and goes on as soon as somebody does."""
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
