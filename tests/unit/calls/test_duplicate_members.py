"""JSON that names a member twice, which different readers read differently."""

import json
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.calls import result_rendering
from gateway.calls.arguments.duplicate_members import has_repeated_names
from gateway.domain.http.requests import UpstreamResponse

REPEATED = [
    b'{"a":1,"a":2}',
    b'{"a":1,"\\u0061":2}',
    b'[{"b":{"a":1,"c":[{"x":0,"x":0}]}}]',
    b'{"q":"\\u0022:\\u0022:","a":1,"a":2}',
    b'{"":1,"":1}',
    b'{"a":123456789012345678901234567890,"a":1e999}',
]
UNIQUE = [
    b"{}",
    b'{"a":1}',
    b'[{"a":1},{"a":1}]',
    b'{"a":{"a":{"a":1}}}',
    b'{"a":"\\":\\":","b":"\\u0022:"}',
    b'{"A":1,"a":1}',
    b'{"a":1.50,"b":1e3,"c":"\\u00e9\\/"}',
]


def _result(body: bytes) -> dict[str, Any]:
    answer = UpstreamResponse(status=200, content_type="application/json", body=body)
    result: dict[str, Any] = json.loads(b"{" + result_rendering.content(answer) + b"}")
    return result


@pytest.mark.parametrize("body", REPEATED)
def test_a_repeated_name_leaves_no_structured_content(body: bytes) -> None:
    """Ours: text and structure cannot disagree, and the result states why one of them is missing (CAL-1)."""
    result = _result(body)

    assert "structuredContent" not in result
    assert result["content"][0]["text"] == body.decode()
    assert "two members of the same name" in result["content"][1]["text"]
    assert result["isError"] is False


@pytest.mark.parametrize("body", UNIQUE)
def test_other_json_keeps_its_structure(body: bytes) -> None:
    """Ours: names that differ, or belong to different objects, are not the same (CAL-1)."""
    assert not has_repeated_names(body)
    assert "structuredContent" in _result(body)


def test_a_cut_answer_is_held_to_it_as_well() -> None:
    """Ours: the kept part of a large answer may name a member twice too (CAL-1)."""
    items = b",".join(b'{"a":%d,"a":%d}' % (n, n + 1) for n in range(40_000))

    result = _result(b"[" + items + b"]")

    assert "structuredContent" not in result
    assert any("two members of the same name" in block["text"] for block in result["content"])


class _Object(list[Any]):
    """Members in order, repeated or not."""


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.lists(st.tuples(st.text(max_size=2), inner), max_size=4).map(_Object)
    ),
    max_leaves=12,
)


def _write(value: Any) -> str:
    if isinstance(value, _Object):
        return "{" + ",".join(f"{json.dumps(name)}:{_write(member)}" for name, member in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_write, cast("Sequence[Any]", value))) + "]"
    return json.dumps(value)


def _repeats(value: Any) -> bool:
    if isinstance(value, _Object):
        names = [name for name, _ in value]
        return len(set(names)) < len(names) or any(_repeats(member) for _, member in value)
    return isinstance(value, list) and any(map(_repeats, cast("Sequence[Any]", value)))


@given(JSON)
def test_every_repeated_name_is_found(value: Any) -> None:
    """Ours: exact for any JSON, whichever of the two ways it is compared (CAL-1)."""
    assert has_repeated_names(_write(value).encode()) is _repeats(value)
