"""JSON of any type: floats are read by Python, and none is out of range."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.json_text import decode_json, decode_object


@pytest.mark.parametrize("decode", [decode_json, decode_object])
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_read_by_python_and_exactly(decode: Any, number: float) -> None:
    """Ours: `msgspec` takes 20 µs for some floats, so that one message of 1 MB would stop all tenants (ISO-2)."""
    assert decode.__self__.float_hook is not None  # the decoder of `msgspec` reads no float itself
    for text in (repr(number), f"{number:.20e}", f"{number:.17E}"):
        assert decode(f'{{"a":{text}}}'.encode()) == {"a": float(text)} == json.loads(f'{{"a":{text}}}')


@pytest.mark.parametrize("text", ["1e400", "-1e400", "1.8e308", "1" + "0" * 400 + ".0"])
def test_numbers_out_of_range_are_refused(text: str) -> None:
    """Ours: no infinity comes in by a long exponent (ISO-2)."""
    with pytest.raises(msgspec.MsgspecError, match="out of range"):
        decode_json(f"[{text}]".encode())
