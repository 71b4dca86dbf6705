"""Conversion of typed arguments to the values of a tool's schema."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cli.arguments import allowed_kinds, parse_arguments, parse_value
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure

_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "number": {"type": "integer"},
        "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "list": {"type": "array"},
        "shared": {"$ref": "#/$defs/a~1b"},
        "loop": {"$ref": "#/$defs/loop"},
        "choice": {"enum": ["1", "2"]},
        "free": {},
    },
    "$defs": {"a/b": {"type": ["string", "boolean"]}, "loop": {"$ref": "#/$defs/loop"}},
}


@pytest.mark.parametrize(
    ("typed", "name", "value"),
    [
        ("text=5", "text", "5"),
        ("text=true", "text", "true"),
        ('text="quoted"', "text", "quoted"),
        ("text=a=b", "text", "a=b"),
        ("text=", "text", ""),
        ("number=5", "number", 5),
        ("number=5.0", "number", 5.0),
        ("number=5.5", "number", "5.5"),
        ("number=five", "number", "five"),
        ("number=true", "number", "true"),
        ("either=null", "either", None),
        ("either=x", "either", "x"),
        ("list=[1,2]", "list", [1, 2]),
        ("list=1", "list", "1"),
        ("shared=true", "shared", True),
        ("shared=1", "shared", "1"),
        ("choice=1", "choice", "1"),
        ("free=1", "free", 1),
        ("free=NaN", "free", "NaN"),
        ("unknown=1", "unknown", 1),
    ],
)
def test_a_value_is_json_only_where_the_schema_expects_that_kind(typed: str, name: str, value: object) -> None:
    """Ours: no string needs a second quotation for the shell, and no number becomes text without a request."""
    found = parse_arguments([typed], whole=None, schema=_SCHEMA)[name]

    assert (found, type(found)) == (value, type(value))


def test_the_whole_object_and_single_arguments_go_together() -> None:
    """Ours: `--args` and NAME=VALUE add up."""
    assert parse_arguments(["text=x"], whole='{"number": 1}', schema=_SCHEMA) == {"number": 1, "text": "x"}


@pytest.mark.parametrize(
    ("typed", "whole", "reason"),
    [
        (["text"], None, "NAME=VALUE"),
        (["=x"], None, "NAME=VALUE"),
        (["text=1", "text=2"], None, "twice"),
        (["text=1"], '{"text": "2"}', "twice"),
        ([], "[1]", "object"),
        ([], "{", "not valid JSON"),
        ([], '{"a": Infinity}', "not valid JSON"),
    ],
)
def test_a_malformed_argument_is_wrong_usage(typed: list[str], whole: str | None, reason: str) -> None:
    """Ours: nothing is guessed; the message shows the notation."""
    with pytest.raises(Failure, match=reason) as caught:
        parse_arguments(typed, whole=whole, schema=_SCHEMA)

    assert caught.value.exit_code is ExitCode.USAGE


def test_a_schema_that_refers_to_itself_allows_everything() -> None:
    """Ours: a hostile schema costs nothing but the help it would have been."""
    assert parse_arguments(["loop=1"], whole=None, schema=_SCHEMA) == {"loop": 1}
    looped: dict[str, object] = {}
    looped["allOf"] = [looped]
    assert "string" in allowed_kinds(looped, root=looped)


@given(st.text())
def test_any_text_survives_where_a_string_is_expected(text: str) -> None:
    """Ours: a text that is no JSON string arrives as it was typed."""
    found = parse_value(text, {"type": "string"}, root={})

    try:
        loaded: object = json.loads(text)
    except ValueError:
        loaded = None
    assert found == (loaded if isinstance(loaded, str) else text)
