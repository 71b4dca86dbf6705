"""Decoders of JSON texts whose values may have any type."""

import math
from typing import Any

import msgspec


def _read_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("number out of range")
    return value


decode_json = msgspec.json.Decoder(float_hook=_read_float).decode
"""Decodes a JSON text. Raises msgspec.MsgspecError or UnicodeDecodeError.

`msgspec` alone takes up to 20 µs for a float such as 1.5e300, and a text of 1 MB would hold the interpreter lock for a
second; the hook takes at most 1 µs."""
decode_object = msgspec.json.Decoder(dict[str, Any], float_hook=_read_float).decode
"""Decodes a JSON text that is an object; see `decode_json`."""
