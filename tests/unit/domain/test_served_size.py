"""What definitions cost in a list, whichever library wrote them."""

import json
from typing import Any

import msgspec
import orjson
import pytest

from gateway.domain.tools import served_bytes

NUMBERS = [1e-5, 1e-7, 0.0001, 1e16, 1e22, -0.00001, 5e-324, 1.5, 0.0, -0.0, 2**63, 1.7976931348623157e308]


@pytest.mark.parametrize("write", [orjson.dumps, msgspec.json.encode])
@pytest.mark.parametrize("value", [*NUMBERS, NUMBERS, "1e-7 é 0.00001", "plain é", {"a": [1, "x"]}])
def test_a_definition_costs_what_is_served(write: Any, value: object) -> None:
    """Ours: a price is the bytes on the wire, where numbers are written as Python's own library does."""
    served = json.dumps({"x": value}, ensure_ascii=False, separators=(",", ":")).encode()

    assert served_bytes(write({"x": value})) == len(served)
