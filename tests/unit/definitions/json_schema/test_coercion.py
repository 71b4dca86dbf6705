"""Coercion: accepted spellings, refused spellings, and that each reading is the only one."""

import json
import sys
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.calls.arguments.acceptance import ArgumentAcceptance
from gateway.calls.arguments.costly_validation import CostlyValidation
from gateway.definitions.json_schema.coercion import readings
from gateway.definitions.json_schema.dialects import compile_schema
from gateway.definitions.json_schema.limits import MAX_READINGS
from gateway.definitions.json_schema.validator import compile_input
from gateway.domain.identifiers import TenantId
from gateway.errors import ArgumentsInvalid
from gateway.openapi.operation.file_parts import FILE
from tests.support.examples import at_least
from tests.support.random_schemas import NAMES, RandomSchemas

ACME = TenantId("ten_acme")
REFUSED = object()
INTEGER, NUMBER, TEXT, FLAG = ({"type": name} for name in ("integer", "number", "string", "boolean"))
OBJECT = {"type": "object", "properties": {"a": INTEGER, "b": {"type": ["string", "null"]}}, "required": ["a"]}


def _list_of(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


async def _accept(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> Any:
    validator = compile_input(msgspec.json.encode({"inputSchema": schema}))
    try:
        return await ArgumentAcceptance(CostlyValidation()).read(ACME, validator, arguments, validator.check(arguments))
    except ArgumentsInvalid:
        return REFUSED


READ: dict[str, tuple[Mapping[str, Any], Any, Any]] = {
    "object as text": (OBJECT, '{"a": 1}', {"a": 1}),
    "object as text with line ends": (OBJECT, '{\n  "a": 1,\n  "b": null\n}', {"a": 1, "b": None}),
    "list as text": (_list_of(INTEGER), "[1, 2]", [1, 2]),
    "list of texts as text": (_list_of(TEXT), '["a", "5"]', ["a", "5"]),
    "text in text": ({**OBJECT, "properties": {"a": _list_of(TEXT)}}, '{"a": "[\\"x\\"]"}', {"a": ["x"]}),
    "list of objects from one as text": (_list_of(OBJECT), '{"a": "7"}', [{"a": 7}]),
    "integer": (INTEGER, "5", 5),
    "negative integer": (INTEGER, "-12", -12),
    "integer beyond 2^53": (INTEGER, "4611686018427387905", 4611686018427387905),
    "integer beyond 64 bits": (INTEGER, "9" * 40, int("9" * 40)),
    "number": (NUMBER, "0.1", 0.1),
    "number with exponent": (NUMBER, "1e3", 1000.0),
    "whole number": (NUMBER, "5", 5),
    "boolean": (FLAG, "false", False),
    "constant": ({"enum": [1, 2, 3]}, "2", 2),
    "nullable integer": ({"type": ["integer", "null"]}, "5", 5),
    "one text for a list": (_list_of(TEXT), "a", ["a"]),
    "one text that looks like a list": (_list_of(TEXT), "[WIP] a", ["[WIP] a"]),
    "one number for a list": (_list_of(INTEGER), 5, [5]),
    "one number as text for a list": (_list_of(INTEGER), "5", [5]),
    "one object for a list": (_list_of(OBJECT), {"a": 1}, [{"a": 1}]),
    "items of a list": (_list_of(INTEGER), [1, "2"], [1, 2]),
    "values of a map": ({"type": "object", "additionalProperties": INTEGER}, {"x": "1"}, {"x": 1}),
    "null for an optional member": (
        {"type": "object", "properties": {"a": INTEGER, "b": TEXT}},
        {"a": 1, "b": None},
        {"a": 1},
    ),
    "null that the schema allows beside one that it does not": (
        {"type": "object", "properties": {"a": INTEGER, "b": {"type": ["string", "null"]}}},
        {"a": None, "b": None},
        {"b": None},
    ),
    "one branch of several": ({"anyOf": [INTEGER, FLAG]}, "5", 5),
    "the branch of the constant": (
        {
            "oneOf": [
                {"type": "object", "properties": {"kind": {"const": kind}, "n": part}, "required": ["kind"]}
                for kind, part in (("a", INTEGER), ("b", _list_of(INTEGER)))
            ]
        },
        {"kind": "b", "n": "5"},
        {"kind": "b", "n": [5]},
    ),
    "file from base64": (FILE, "JVBERi0xLjQ=", {"base64": "JVBERi0xLjQ="}),
    "file from base64 without padding": (FILE, "JVBERi0xLjQ", {"base64": "JVBERi0xLjQ="}),
    "file from a data URI": (
        FILE,
        "data:application/pdf;base64,JVBERi0xLjQ",
        {"base64": "JVBERi0xLjQ=", "content_type": "application/pdf"},
    ),
    "member without padding": (FILE, {"base64": "QQ", "filename": "a"}, {"base64": "QQ==", "filename": "a"}),
    "member with a data URI": (
        FILE,
        {"base64": "DATA:text/plain;charset=utf-8;base64,QQ=="},
        {"base64": "QQ==", "content_type": "text/plain;charset=utf-8"},
    ),
    "data URI that names the same type": (
        FILE,
        {"base64": "data:text/plain;base64,QQ==", "content_type": "text/plain"},
        {"base64": "QQ==", "content_type": "text/plain"},
    ),
    "files of a list": (_list_of(FILE), "QQ", [{"base64": "QQ=="}]),
}

UNREAD: dict[str, tuple[Mapping[str, Any], Any]] = {
    "two members of one name": (OBJECT, '{"a": 1, "a": 2}'),
    "a text that is JSON of two readings is no element either": (_list_of(TEXT), '{"a": 1, "a": 2}'),
    "not a number": (NUMBER, "NaN"),
    "infinite": (NUMBER, "1e999"),
    "a digit would be lost": (NUMBER, "0.10000000000000000001"),
    "white space": (INTEGER, " 5"),
    "a sign": (INTEGER, "+5"),
    "leading zero": (INTEGER, "007"),
    "negative zero": (INTEGER, "-0"),
    "digits of another script": (INTEGER, "٥"),
    "hexadecimal": (INTEGER, "0x10"),
    "a fraction for an integer": (INTEGER, "5.0"),
    "an exponent for an integer": (INTEGER, "1e3"),
    "too many digits": (INTEGER, "1" * 641),
    "boolean in another spelling": (FLAG, "True"),
    "boolean as number": (FLAG, "1"),
    "number as boolean": (INTEGER, "true"),
    "null as text": ({"type": ["integer", "null"]}, "null"),
    "a number for a text": (TEXT, 5),
    "empty text": (INTEGER, ""),
    "empty file": (FILE, ""),
    "another value of a closed list": ({"enum": [1, 2, 3]}, "4"),
    "two branches": ({"anyOf": [_list_of(TEXT), _list_of(INTEGER)]}, "5"),
    "an integer or a list of it": ({"anyOf": [INTEGER, _list_of(INTEGER)]}, "5"),
    "null for a required member": (OBJECT, {"a": None}),
    "null in a list": (_list_of(INTEGER), [None]),
    "null for a list": (_list_of(INTEGER), None),
    "base64 of no length": (FILE, "JVBER"),
    "not base64": (FILE, "a b"),
    "half of the padding": (FILE, "QQ="),
    "data URI without base64": (FILE, "data:text/plain,hello"),
}


@pytest.mark.parametrize("name", READ)
async def test_a_spelling_with_one_reading_is_read(name: str) -> None:
    """Ours: each entry of the closed list is read, exactly (CLN-2)."""
    schema, given_value, read = READ[name]
    whole = {"type": "object", "properties": {"v": schema}, "required": ["v"]}

    found = await _accept(whole, {"v": given_value})

    assert found == {"v": read}
    assert json.dumps(found) == json.dumps({"v": read}), "true is not 1, and 5 is not 5.0"


@pytest.mark.parametrize("name", UNREAD)
async def test_any_other_spelling_is_refused(name: str) -> None:
    """Ours: a spelling that is not on the list, or has two readings, is refused with its place (CLN-2)."""
    schema, given_value = UNREAD[name]
    whole = {"type": "object", "properties": {"v": schema}, "required": ["v"]}

    assert await _accept(whole, {"v": given_value}) is REFUSED


async def test_a_tool_without_arguments_ignores_one_dummy() -> None:
    """Ours: some clients send one argument to every tool (CLN-2)."""
    closed: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}

    assert await _accept(closed, {"random_string": "x"}) == {}
    assert await _accept(closed, {"dummy": {}}) == {}
    assert await _accept(closed, {"a": {"b": 1}}) is REFUSED
    assert await _accept(closed, {"a": 1, "b": 2}) is REFUSED
    assert await _accept({**closed, "properties": {"id": INTEGER}}, {"random_string": "x"}) is REFUSED


async def test_a_valid_value_stays_unchanged() -> None:
    """Ours: only parts that are refused are read again (CLN-2)."""
    loose = {"anyOf": [TEXT, INTEGER]}
    schema = {"type": "object", "properties": {"a": loose, "b": INTEGER, "c": TEXT, "d": {}}}

    assert await _accept(schema, {"a": "5", "b": "7", "c": "[1]", "d": "{}"}) == {
        "a": "5",
        "b": 7,
        "c": "[1]",
        "d": "{}",
    }
    valid = {"a": "5", "c": "true"}
    assert await _accept(schema, valid) is valid


async def test_a_data_uri_that_contradicts_its_type_is_refused() -> None:
    """Ours: a file has one media type; the handler then names the fault of its base64 (CLN-2)."""
    schema = {"type": "object", "properties": {"v": FILE}}
    arguments = {"v": {"base64": "data:text/plain;base64,QQ==", "content_type": "image/png"}}

    assert await _accept(schema, arguments) is arguments


@pytest.mark.parametrize(
    "value",
    ["[" * 5_000 + "]" * 5_000, "[" + "{}," * 6_000 + "{}]", '{"a":' + " " * 200_000 + "1}", "{'a': 1}"],
    ids=["depth", "values", "bytes", "broken"],
)
async def test_json_text_is_read_within_the_limits_of_a_message(value: str) -> None:
    """Ours: a text in a message cannot hold more than a message may (ISO-2)."""
    assert (
        await _accept({"type": "object", "properties": {"v": {"type": ["object", "array"]}}}, {"v": value}) is REFUSED
    )


def test_the_search_for_readings_is_bounded() -> None:
    """Ours: choices in choices end the search, not the replica (ISO-2)."""
    tree = {"anyOf": [{"type": "object", "properties": {name: {"$ref": "#/$defs/t"}}} for name in "abcdefgh"]}
    value: Any = "5"
    for _ in range(40):
        value = dict.fromkeys("abcdefgh", value)
    schema = {"type": "object", "properties": {"v": {"$ref": "#/$defs/t"}}, "$defs": {"t": tree}}
    several = {"anyOf": [INTEGER, _list_of(INTEGER)]}
    many = {"type": "object", "properties": dict.fromkeys("abcdefgh", several)}

    assert len(readings(schema, {"v": value})) <= MAX_READINGS
    assert readings(many, dict.fromkeys("abcdefgh", "5")) == ()


_SCALARS: Mapping[str, list[Any]] = {
    "integer": [0, -7, 42, 2**53 + 1, -(10**30)],
    "number": [0.5, -2.25, 3, 1e300],
    "boolean": [True, False],
    "string": ["", "a", "5", "true", "{}", "[1]", "null"],
}


class _Spelled:
    """A random schema with typed parts, a value of it, and the value in a random spelling from the list."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self.schema, self.value, self.spelled = self._object(3)

    def _part(self, depth: int) -> tuple[dict[str, Any], Any, Any]:
        kinds = ["integer", "number", "boolean", "string", *(["object", "array", "object"] if depth else [])]
        kind = self._chance.choice(kinds)
        if kind == "object":
            return self._maybe_text(*self._object(depth - 1))
        if kind == "array":
            return self._array(depth - 1)
        value: Any = self._chance.choice(_SCALARS[kind])
        is_text = kind != "string" and self._chance.random() < 0.5
        return {"type": kind}, value, json.dumps(value) if is_text else value

    def _object(self, depth: int) -> tuple[dict[str, Any], Any, Any]:
        schema: dict[str, Any] = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
        value: dict[str, Any] = {}
        spelled: dict[str, Any] = {}
        for name in NAMES[: self._chance.randint(1, 4)]:
            schema["properties"][name], part, text = self._part(depth)
            if self._chance.random() < 0.3:
                if self._chance.random() < 0.7:
                    spelled[name] = None  # an optional member that is absent
                continue
            value[name], spelled[name] = part, text
            if self._chance.random() < 0.5:
                schema["required"].append(name)
        return schema, value, spelled

    def _array(self, depth: int) -> tuple[dict[str, Any], Any, Any]:
        items, value, spelled = self._part(depth)
        schema = {"type": "array", "items": items}
        if self._chance.random() < 0.4 and not isinstance(spelled, list) and spelled is not None:
            is_json = isinstance(spelled, str) and spelled[:1] in {"{", "["}
            if not is_json or items["type"] == "object":  # else a text that is a list would be one of its elements
                return schema, [value], spelled
        return self._maybe_text(schema, [value], [spelled])

    def _maybe_text(self, schema: dict[str, Any], value: Any, spelled: Any) -> tuple[dict[str, Any], Any, Any]:
        indent = self._chance.choice((None, 2))
        return schema, value, json.dumps(spelled, indent=indent) if self._chance.random() < 0.4 else spelled


@settings(max_examples=at_least(300))
@given(seed=st.integers(0, 2**40))
async def test_every_generated_spelling_reaches_the_handler_as_the_value(seed: int) -> None:
    """Ours: whatever combination of spellings a client uses, the handler gets the value that was meant (CLN-2)."""
    made = _Spelled(Random(seed))

    found = await _accept(made.schema, made.spelled)

    assert json.dumps(found, sort_keys=True) == json.dumps(made.value, sort_keys=True)


@settings(max_examples=at_least(300))
@given(seed=st.integers(0, 2**40))
async def test_no_generated_call_is_read_in_one_of_several_ways(seed: int) -> None:
    """Ours: for any schema, what is accepted conforms and is the only conforming reading (CLN-2)."""
    chance = Random(seed)
    made = RandomSchemas(chance, oddity=0)
    schema = made.object_schema() | {"$defs": made.definitions()}
    arguments = {name: made.value() for name in NAMES if chance.random() < 0.7}
    try:
        plain = compile_schema(schema, asserts_formats=False)
    except ValueError:  # an annotation of another dialect
        return
    conforming = [reading for reading in readings(schema, arguments) if plain.is_valid(reading)]

    found = await _accept(schema, arguments)

    if plain.is_valid(arguments):
        assert found is arguments
    elif len(conforming) == 1:
        assert found == conforming[0]
    else:
        assert found is REFUSED


_MANY = 20_000
_BRANCHES = [{"type": "array", "minItems": 10**6 + n} for n in range(400)]
_RECORDS = [{"type": "object", "minProperties": 10**6 + n} for n in range(150)]
_NAMED = {str(n): INTEGER for n in range(3000)}


_HOSTILE: Sequence[tuple[Mapping[str, Any], Any]] = [
    ({"anyOf": _BRANCHES}, [0] * _MANY),
    ({"anyOf": [{**one, "items": {}} for one in _BRANCHES]}, [0] * _MANY),
    ({"anyOf": _RECORDS}, {str(n): 0 for n in range(_MANY)}),
    ({"anyOf": [{**one, "properties": {"a": INTEGER}} for one in _RECORDS]}, {str(n): 0 for n in range(_MANY)}),
    (_list_of({"type": "integer", "enum": list(range(2000))}), ["1", *[1999] * 3900]),
    (_list_of({"type": "object", "required": list(_NAMED)}), [dict[str, object]()] * 3900),
    (_list_of({"type": "object", "properties": _NAMED, "additionalProperties": False}), [{"0": "1"}] * 3900),
    ({"oneOf": [_list_of({"const": n}) for n in range(300)]}, ["1"] * 2000),
    ({"$ref": "#/" + "a/" * 50_000}, "1"),
]


@pytest.mark.parametrize(("schema", "value"), _HOSTILE)
def test_a_search_is_bounded_by_all_its_work(schema: Mapping[str, Any], value: object) -> None:
    """Attack: elements, members, listed values and names cost as schemas do, so that no call holds the loop (RES-1)."""
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        found = readings({"type": "object", "properties": {"a": schema}}, {"a": value})
    finally:
        sys.setprofile(None)

    assert len(found) <= MAX_READINGS
    assert calls < 400_000  # at most about 40 ms; the first of these made 16 million


def test_a_long_enumeration_is_read_once() -> None:
    """Ours: texts of numbers are read beside a list of thousands of values (CLN-2)."""
    schema = {"type": "object", "properties": {"a": _list_of({"type": "integer", "enum": list(range(5000))})}}

    assert readings(schema, {"a": ["1"] * 500}) == [{"a": [1] * 500}]
