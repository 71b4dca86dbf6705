"""The bytes of a definition in a list."""

import json
from typing import Any

import msgspec
import orjson
import pytest

from gateway.domain.listed.definition import served_bytes

NUMBERS = [1e-5, 1e-7, 0.0001, 1e16, 1e22, -0.00001, 5e-324, 1.5, 0.0, -0.0, 2**63, 1.7976931348623157e308]


@pytest.mark.parametrize("write", [orjson.dumps, msgspec.json.encode])
@pytest.mark.parametrize("value", [*NUMBERS, NUMBERS, "1e-7 é 0.00001", "plain é", {"a": [1, "x"]}])
def test_a_definition_costs_the_served_bytes(write: Any, value: object) -> None:
    """Ours: a price is the bytes on the wire, where numbers are written as Python's own library does."""
    stored = {"name": "x", "inputSchema": {"type": "object", "properties": {"a": {"default": value}}}}
    served = json.dumps(stored, ensure_ascii=False, separators=(",", ":")).encode()

    assert served_bytes(write(stored)) == len(served)


def test_a_definition_costs_its_listed_form() -> None:
    """Ours: a price is the bytes on the wire, without what lists leave out (CLN-1)."""
    schema: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
    listed = b'{"name":"x","inputSchema":{"type":"object","properties":{}}}'

    assert served_bytes(msgspec.json.encode({"name": "x", "inputSchema": schema})) == len(listed)
