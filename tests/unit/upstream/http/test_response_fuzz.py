"""Mutated responses in random pieces: what the client accepts, another parser (h11) reads in the same way."""

from itertools import pairwise

import h11
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.upstream.http.errors import TransportFault
from tests.unit.upstream.http.test_connection import Bench, answers

_TOKENS = (
    *(bytes([code]) for code in b"\r\n \t\0:;,015-+a\xff"),
    *(b"\r\n", b"HTTP/1.1 ", b"HTTP/1.0 ", b"200 OK\r\n", b"204 X\r\n", b"304 X\r\n", b"100 X\r\n\r\n", b"101 X\r\n"),
    *(b"Content-Length: 5\r\n", b"Content-Length: 05\r\n", b"Content-Length: 5, 5\r\n", b"content-length:7\r\n"),
    *(b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding: gzip, chunked\r\n"),
    *(b"Connection: close\r\n", b"Connection: keep-alive\r\n", b"Upgrade: x\r\n"),
    *(b" folded\r\n", b"5\r\nhello\r\n", b"0\r\n\r\n"),
)
"""Parts of messages by which parsers have disagreed: line ends, lengths, codings, versions, signs, folds."""

Read = tuple[int, bytes]


@st.composite
def mutants(draw: st.DrawFn) -> bytes:
    """A response with up to four parts inserted, overwritten, removed or repeated."""
    raw = bytearray(draw(answers())[0])
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(raw)))
        end = min(len(raw), start + draw(st.integers(0, 12)))
        part = draw(st.sampled_from(_TOKENS) | st.binary(max_size=4) | st.just(bytes(raw[start:end]) * 2))
        raw[start : draw(st.sampled_from((start, end)))] = part
    return bytes(raw)


def _oracle(raw: bytes, method: str) -> tuple[Read, bool] | None:
    """Result of h11, and if bytes are left or the connection must close; None for a fault."""
    peer = h11.Connection(h11.CLIENT)
    peer.send(h11.Request(method=method, target="/", headers=[("host", "h")]))
    peer.send(h11.EndOfMessage())
    status, content = 0, b""
    try:
        peer.receive_data(raw)
        peer.receive_data(b"")
        while True:
            match peer.next_event():
                case h11.Response(status_code=status):
                    pass
                case h11.Data(data=piece):
                    content += bytes(piece)
                case h11.EndOfMessage():
                    left = peer.trailing_data[0].strip(b"\r\n")  # both skip line ends before the next response
                    return (status, content), bool(left) or peer.their_state is h11.MUST_CLOSE
                case h11.InformationalResponse(status_code=100 | 102 | 103):
                    pass
                case _:
                    return None
    except h11.RemoteProtocolError:
        return None


@given(mutants(), st.lists(st.floats(0, 1), max_size=8), st.booleans())
@example(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", [], False)
@example(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", [0.9], False)
@example(b"HTTP/1.1 200 OK\nContent-Length: 2\n\nab", [], False)
@example(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 200 OK\r\n\r\n", [0.5], False)
def test_a_mutated_response_is_refused_or_read_as_another_parser_reads_it(
    raw: bytes, cuts: list[float], is_head: bool
) -> None:
    """ISO-1: a response that the client accepts ends where another parser of RFC 9112 finds its end."""
    points = sorted({0, len(raw), *(int(cut * len(raw)) for cut in cuts)})
    pieces = [raw[start:end] for start, end in pairwise(points)]

    status, _, read, _ = Bench(is_head=is_head).read(*pieces, ends=True)
    other = _oracle(raw, "HEAD" if is_head else "GET")

    if isinstance(read, bytes):
        if other is not None:
            assert (status, read) == other[0]
    else:
        assert issubclass(read, TransportFault)


@given(mutants(), st.lists(st.floats(0, 1), max_size=8))
def test_a_connection_is_kept_only_after_the_last_byte_of_its_response(raw: bytes, cuts: list[float]) -> None:
    """ISO-1: bytes behind a response are never the beginning of the next tenant's."""
    points = sorted({0, len(raw), *(int(cut * len(raw)) for cut in cuts)})
    pieces = [raw[start:end] for start, end in pairwise(points)]

    bench = Bench()
    for piece in pieces:
        bench.connection.data_received(piece)
    bench.loop.close()
    content = bench.answer.take() if bench.answer.fault is None else b""
    bench.answer.release()
    other = _oracle(raw, "GET")

    if bench.owner.kept and other is not None:
        assert other == ((bench.answer.status, content), False)
