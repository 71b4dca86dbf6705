"""Bodies sent with gzip or deflate."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import UpstreamAnswerBroken, UpstreamAnswerTooLarge
from gateway.upstream.decompression import Inflater, open_inflater

MIB = 1 << 20


def raw_deflate(content: bytes) -> bytes:
    """Deflate without the zlib wrapper, which some servers send."""
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(content) + packer.flush()


def inflate(encoding: str, body: bytes, *, limit: int = MIB, step: int = 1 << 30) -> bytes:
    """The result of feeding a body in steps."""
    inflater = Inflater(encoding, limit=limit)
    for start in range(0, len(body), step):
        inflater.feed(body[start : start + step])
    return inflater.finish()


@given(st.binary(max_size=3000), st.sampled_from([1, 2, 7, 1000, 1 << 30]))
def test_every_encoding_reads_back_in_steps_of_any_size(content: bytes, step: int) -> None:
    """RFC 9110: gzip, its old name, and both things called deflate."""
    assert inflate("gzip", gzip.compress(content), step=step) == content
    assert inflate("X-GZip", gzip.compress(content), step=step) == content
    assert inflate(" deflate ", zlib.compress(content), step=step) == content
    assert inflate("deflate", raw_deflate(content), step=step) == content


@pytest.mark.parametrize("size", [n * 262_144 + more for n in (1, 2) for more in (-1, 0, 1, 200, 257, 258, 259, 300)])
def test_results_around_the_size_of_a_step_are_whole(size: int) -> None:
    """Ours: bytes that zlib still holds when a step is full are not lost."""
    assert inflate("gzip", gzip.compress(b"\0" * size)) == b"\0" * size
    assert inflate("deflate", raw_deflate(b"\0" * size)) == b"\0" * size


def test_members_of_a_gzip_stream_are_joined() -> None:
    """RFC 1952: a stream may have several members."""
    for step in (1, 5, 1 << 30):
        assert inflate("gzip", gzip.compress(b"a") + gzip.compress(b"b") + gzip.compress(b""), step=step) == b"ab"


@pytest.mark.parametrize(
    "encoding", ["br", "zstd", "compress", "gzip, gzip", "gzip,deflate", "identity, gzip", "", "*"]
)
def test_encodings_that_were_not_offered_are_refused(encoding: str) -> None:
    """Ours: stacked and foreign encodings are broken answers."""
    with pytest.raises(UpstreamAnswerBroken):
        Inflater(encoding, limit=MIB)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", b"not gzip"),
        ("gzip", gzip.compress(b"x" * 100)[:-1]),
        ("gzip", gzip.compress(b"x" * 100)[:-8] + b"\0" * 8),
        ("gzip", gzip.compress(b"x") + b"rest"),
        ("gzip", gzip.compress(b"x") + b"\x1f"),
        ("gzip", gzip.compress(b"x") + b"\0"),
        ("deflate", zlib.compress(b"x") + b"rest"),
        ("deflate", zlib.compress(b"x" * 100)[:-1]),
        ("deflate", b"\xff\xff\xff"),
        ("deflate", b"x"),
    ],
)
def test_a_stream_with_a_wrong_encoding_is_refused(encoding: str, body: bytes) -> None:
    """Ours: a truncated, continued or foreign stream is a broken answer, however it is cut."""
    for step in (1, 1 << 30):
        with pytest.raises(UpstreamAnswerBroken):
            inflate(encoding, body, step=step)


@pytest.mark.parametrize("encodings", [[], ["identity"], ["Identity", " "], ["identity, identity"]])
def test_a_body_without_an_encoding_is_unchanged(encodings: list[str]) -> None:
    """RFC 9110 section 12.5.3: `identity` means that nothing was done."""
    assert open_inflater(encodings, limit=MIB) is None


def test_identity_beside_an_encoding_changes_nothing() -> None:
    """Ours: servers list it although they should not (OAS-2)."""
    inflater = open_inflater(["identity", "gzip"], limit=MIB)

    assert inflater is not None
    inflater.feed(gzip.compress(b"a"))
    assert inflater.finish() == b"a"


def test_an_empty_body_needs_no_stream() -> None:
    """Ours: an upstream that sends nothing sends nothing encoded."""
    assert inflate("gzip", b"") == b""


def test_a_result_beyond_the_limit_is_refused() -> None:
    """Ours: the limit holds for what comes out."""
    body = gzip.compress(b"".join(b"%d," % n for n in range(20_000)))
    whole = inflate("gzip", body)

    assert inflate("gzip", body, limit=len(whole)) == whole
    with pytest.raises(UpstreamAnswerTooLarge):
        inflate("gzip", body, limit=len(whole) - 1)


def test_a_bomb_is_stopped_by_its_ratio() -> None:
    """Ours: more than a hundred bytes out per byte in is an attack once it is large."""
    with pytest.raises(UpstreamAnswerTooLarge):
        inflate("gzip", gzip.compress(b"\0" * (8 * MIB)), limit=100 * MIB)
    assert len(inflate("gzip", gzip.compress(b"\0" * 500_000))) == 500_000


def test_a_stream_of_countless_members_is_refused() -> None:
    """Ours: members cost CPU without producing bytes."""
    with pytest.raises(UpstreamAnswerBroken):
        inflate("gzip", gzip.compress(b"") * 5_000)


def test_blocks_that_inflate_to_nothing_are_bounded() -> None:
    """Ours: an upstream cannot send compressed bytes without end, because not even the result grows (CAL-4)."""
    empty_block = b"\x00\x00\x00\xff\xff"
    inflater = Inflater("deflate", limit=MIB)
    with pytest.raises(UpstreamAnswerTooLarge):
        for _ in range(20):
            inflater.feed(empty_block * 20_000)
    incompressible = bytes(n * n % 251 for n in range(MIB))
    assert inflate("gzip", gzip.compress(incompressible, compresslevel=0), limit=MIB) == incompressible
