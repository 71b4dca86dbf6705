"""Schemas and values that are made to cost: what checking and explaining takes is bounded before it begins."""

import sys
from collections.abc import Generator
from types import FrameType
from typing import Any, cast

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.definitions.json_schema.metered_schema import MeteredSchema
from gateway.definitions.json_schema.tree import SchemaTree
from gateway.definitions.json_schema.validator import DeferredCheck, compile_input
from gateway.errors import Fault
from tests.support.examples import IS_FUZZING, at_least
from tests.support.refusals import Refuser

FLOOR = 16 * 2**20
"""Floor of memory for any refusal: one explanation copies a bounded number of values, however small the body is."""


@pytest.fixture(scope="module")
def refuser() -> Generator[Refuser]:
    """A process with one GiB of address space."""
    with Refuser() as process:
        yield process


def _members(count: int) -> dict[str, int]:
    return {f"k{number}": 1 for number in range(count)}


def _unevaluated(depth: int, keyword: str) -> dict[str, Any]:
    """Schemas in each other of which each asks again what those inside have looked at."""
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(depth):
        inner = [schema] if keyword in {"allOf", "anyOf", "oneOf"} else schema
        schema = {keyword: inner, "unevaluatedProperties": {"type": "integer"}}
    return schema


def _doubled(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"not": {}}
    for _ in range(depth):
        schema = {"allOf": [schema, {"required": ["zz"]}], "properties": {"a": schema}}
    return schema


def _chain(depth: int, **beside: object) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value, **beside}
    return value


def _array(items: dict[str, Any]) -> dict[str, Any]:
    return {"properties": {"x": {"type": "array", "items": items}}}


REPROS: dict[str, tuple[dict[str, Any], object]] = {
    "60 required x 0.65 MB": (
        {"required": [f"r{number}" for number in range(60)]},
        {f"key-of-some-length-{number:08}": number for number in range(16_000)},
    ),
    "100 required x 80,000 members": ({"required": [f"r{number}" for number in range(100)]}, _members(80_000)),
    "200 dependentRequired of 50": (
        {"dependentRequired": {f"k{a}": [f"r{b}" for b in range(50)] for a in range(200)}},
        _members(90_000),
    ),
    "oneOf 300 consts x 200,000": (
        _array({"oneOf": [{"const": number} for number in range(300)]}),
        {"x": [299] * 200_000},
    ),
    "300 objects x 60,000": (
        _array(
            {"oneOf": [{"type": "object", "properties": {"a": {"const": n}}, "required": ["a"]} for n in range(300)]}
        ),
        {"x": [{"a": 299}] * 60_000},
    ),
    "unevaluatedProperties, 400 branches x 60,000": (
        {
            "anyOf": [{"properties": {f"p{number}": {}}} for number in range(400)],
            "unevaluatedProperties": {"type": "string"},
        },
        _members(60_000),
    ),
    "200 patternProperties x 20,000": (
        {"patternProperties": {f"^k.*{number}$": {"type": "string"} for number in range(200)}},
        _members(20_000),
    ),
    "nested unevaluatedProperties, tiny value": (_unevaluated(30, "allOf"), {"k": 1, "m": 2}),
    "violations of doubled schemas": (_doubled(9), _chain(9, pad="x" * 400)),
    "enum of 2,000 texts, all violated": (
        _array({"enum": [f"s{number}" for number in range(2_000)]}),
        {"x": [1] * 1_600},
    ),
    "1,000 required x 16 KiB": ({"required": [f"r{number}" for number in range(1_000)]}, _members(1_400)),
    "anyOf 400 x 0.6 MB": (
        {"anyOf": [{"required": [f"r{number}"]} for number in range(400)]},
        {f"key-of-some-length-{number:08}": number for number in range(16_000)},
    ),
    "oneOf of all names": (
        {"additionalProperties": False, "propertyNames": {"oneOf": [{"maxLength": 1}] * 200}},
        _members(60_000),
    ),
    "refused names of 1,200 members": (
        {"propertyNames": {"maxLength": 1}},
        {f"k{number}": [{}] for number in range(1_200)},
    ),
}


@pytest.mark.parametrize("name", REPROS)
@pytest.mark.parametrize("examine", [False, True], ids=["loop", "child"])
def test_a_refusal_takes_little_memory_for_every_schema(name: str, examine: bool, refuser: Refuser) -> None:
    """Ours: checking and explaining takes at most ten times the body, or is not done (ISO-2)."""
    schema, instance = REPROS[name]
    if examine and name in ENDLESS:
        return  # a child process is killed at its limits

    measured = refuser.measure(schema, instance, examine=examine)

    assert measured.is_costly or measured.faults
    assert measured.peak_bytes <= 10 * measured.body_bytes + FLOOR, measured


ENDLESS = {"nested unevaluatedProperties, tiny value", "oneOf 300 consts x 200,000", "300 objects x 60,000"}


@pytest.mark.parametrize(
    "name",
    [
        "oneOf 300 consts x 200,000",
        "300 objects x 60,000",
        "unevaluatedProperties, 400 branches x 60,000",
        "200 patternProperties x 20,000",
        "nested unevaluatedProperties, tiny value",
    ],
)
def test_an_expensive_check_leaves_the_event_loop(name: str) -> None:
    """Ours: the product of schema and value is counted; a child process continues where the event loop stops
    (ISO-2).
    """
    schema, instance = REPROS[name]

    assert isinstance(compile_input(_definition(schema)).check(instance), DeferredCheck)


def _definition(schema: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"name": "t", "inputSchema": schema})


TEXT = "ab" * 25_000
DEAR: dict[str, tuple[dict[str, Any], object]] = {
    "lists in lists x items x oneOf": (
        {"items": {"items": {"items": {"oneOf": [{"type": "string"}] * 99 + [{"type": "integer"}]}}}},
        [[[1] * 100] * 10] * 10,
    ),
    "patternProperties x names": ({"patternProperties": {f"{n}.*x": {} for n in range(100)}}, _members(5_000)),
    "unevaluatedItems under branches": (
        {"anyOf": [{"prefixItems": [{}] * 9}] * 100, "unevaluatedItems": {"type": "integer"}},
        [1] * 4_000,
    ),
    "contains and unevaluatedItems": (
        {"allOf": [{"contains": {"const": 5.5}, "minContains": 1}] * 50, "unevaluatedItems": {"type": "number"}},
        [5.5] * 2_000,
    ),
    "uniqueItems of fifteen large lists": ({"uniqueItems": True}, [[0] * 5_000 + [n] for n in range(15)]),
    "uniqueItems of few floats each": ({"items": {"uniqueItems": True}}, [[n + 0.5 for n in range(15)]] * 1_000),
    "one long text x one intricate pattern": (
        {"items": {"pattern": "|".join(f"[ab]*{'ab'[n % 2]}[ab]{{{n + 9}}}[cd]" for n in range(24))}},
        [TEXT],
    ),
    "names x one intricate pattern": ({"propertyNames": {"pattern": "(?:[ab]*a[ab]{300})+c"}}, {TEXT: 1}),
    "enum of large values": ({"items": {"enum": [[0] * 200 + [n] for n in range(100)]}}, [[0] * 200 + [99]] * 100),
    "const of a large value": (
        {"items": {"const": [{"a": n} for n in range(200)]}},
        [[{"a": n} for n in range(200)]] * 100,
    ),
    "if, then, else": ({"items": {"if": {"enum": [0.5, *range(999)]}, "then": {"maximum": 1.5}}}, [1e300] * 1_000),
    "dependentSchemas": (
        {"items": {"dependentSchemas": {f"k{a}": {"required": [f"k{b}" for b in range(50)]} for a in range(50)}}},
        [_members(50)] * 300,
    ),
    "small steps of large numbers": ({"items": {"multipleOf": 1e-300}}, [1e300] * 1_000),
    "steps of long numbers": ({"items": {"multipleOf": 0.01}}, [10**4_000] * 200),
}


@pytest.mark.parametrize("name", DEAR)
def test_every_factor_of_the_work_is_counted(name: str) -> None:
    """Ours: each of these takes the event loop long, or a factor away from it; none is made there (ISO-2)."""
    schema, instance = DEAR[name]
    validator = compile_input(_definition(schema))
    validator.prepare()

    assert isinstance(validator.check(instance), DeferredCheck)


CHEAP: dict[str, tuple[dict[str, Any], object]] = {
    "recursion through two definitions": (
        {
            "$ref": "#/$defs/n",
            "$defs": {
                one: {"properties": {"a": {"anyOf": [{"$ref": f"#/$defs/{other}"}] * 2}}, "additionalProperties": False}
                for one, other in (("n", "m"), ("m", "n"))
            },
        },
        _chain(60),
    ),
    "dynamic recursion through two keywords": (
        {
            "$dynamicAnchor": "n",
            "patternProperties": {"a": {"$dynamicRef": "#n"}, "^a": {"$ref": "#/$defs/other"}},
            "$defs": {"other": {"patternProperties": {"a": {"$dynamicRef": "#n"}, "^a": {"$ref": "#"}}}},
        },
        _chain(60),
    ),
    "depth": (
        {"items": {"$ref": "#"}, "anyOf": [{"type": "string"}] * 50 + [{"type": ["array", "integer"]}]},
        [[[[1] * 500] * 10] * 10],
    ),
    "a thousand objects of twenty members": (
        _array(
            {
                "type": "object",
                "properties": {f"k{number}": {"type": ["integer", "string"]} for number in range(20)},
                "required": ["k1", "k2", "k3"],
                "additionalProperties": False,
            }
        ),
        {"x": [_members(20)] * 1_000},
    ),
    "a long vector": (_array({"type": "number"}), {"x": [0.5] * 100_000}),
    "a large text": ({"properties": {"x": {"type": "string", "maxLength": 2_000_000}}}, {"x": "y" * 2**20}),
    "a large text beside a format": (
        {"properties": {"x": {"type": "string"}, "id": {"type": "string", "format": "uuid"}}},
        {"x": "y" * 2**20, "id": "12345678-1234-1234-1234-123456789012"},
    ),
    "a tree": (
        {
            "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "value": {"type": "integer", "minimum": 0}},
            "additionalProperties": False,
        },
        {"left": {"left": {"value": 1}, "right": {}}, "right": {"value": 2}},
    ),
    "a filter of and, or, not": (
        {
            "$ref": "#/$defs/f",
            "$defs": {
                "f": {
                    "oneOf": [
                        {"required": ["and"], "properties": {"and": {"items": {"$ref": "#/$defs/f"}}}},
                        {"required": ["or"], "properties": {"or": {"items": {"$ref": "#/$defs/f"}}}},
                        {"required": ["not"], "properties": {"not": {"$ref": "#/$defs/f"}}},
                        {"required": ["field"], "properties": {"field": {"type": "string"}}},
                    ]
                }
            },
        },
        {"and": [{"field": "a"}, {"or": [{"not": {"field": "b"}}, {"field": "c"}]}] * 20},
    ),
}


CHOICES: tuple[dict[str, Any], object] = (
    {
        "$ref": "#/$defs/n0",
        "$defs": {
            **{
                f"n{number}": {"anyOf": [{"$ref": f"#/$defs/n{number + 1}"}] + [{"$ref": "#/$defs/odd"}] * 400}
                for number in range(40)
            },
            "n40": {"items": {"items": {"not": {"items": {}}}}},
            "odd": {"not": {}},
        },
    },
    [[[0]] * 100] * 100,
)
"""Forty choices in each other; after the end of the check in the innermost one, each has 400 branches left."""


@pytest.mark.parametrize("name", [*DEAR, "choices"])
def test_a_check_ends_soon_after_its_last_unit(name: str) -> None:
    """Ours: visits are bounded by the units of a check, also where a schema goes on after a failure (ISO-2)."""
    schema, instance = DEAR.get(name, CHOICES)
    metered, units, visits = MeteredSchema(schema, SchemaTree(schema, limit=20_000)), 40_000, 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal visits
        visits += event == "call" and frame.f_code.co_name == "charge"

    sys.setprofile(count)
    try:
        metered.is_valid(instance, units)
    finally:
        sys.setprofile(None)

    assert visits <= units // 5


@pytest.mark.parametrize("name", CHEAP)
def test_everyday_values_are_checked_at_once(name: str) -> None:
    """Ours: the bound costs ordinary callers nothing, and recursion that looks dear is tried first (ISO-2)."""
    schema, instance = CHEAP[name]

    assert compile_input(_definition(schema)).check(instance) == ()


def test_violations_are_collected_of_small_values_only() -> None:
    """Ours: a large argument is named, not searched (ISO-2)."""
    validator = compile_input(_definition({"properties": {"x": {"type": "string"}, "y": {"type": "integer"}}}))

    assert _notified(validator.check({"x": ["z" * 20_000]})) == [("/x", 'is not of type "string"')]
    assert _notified(validator.check({"x": ["z" * 20_000], "y": "no"}))[1][0] == "/y"
    assert _notified(validator.check({"x": "z" * 20_000, "y": "no"})) == [("/y", '"no" is not of type "integer"')]


def _notified(found: object) -> list[tuple[str, str]]:
    assert isinstance(found, tuple)
    faults = cast("tuple[Fault, ...]", found)
    return [(fault.pointer, fault.reason) for fault in faults]


def test_a_name_that_a_pointer_has_to_escape_is_found() -> None:
    """Ours: the rough explanation finds every argument, whatever it is called (CAL-2)."""
    names = ["a/b", "c~d", "e%20f", "g h", "é#?"]
    validator = compile_input(_definition({"properties": {name: {"type": "integer"} for name in names}}))
    found = validator.check({**dict.fromkeys(names, "x"), "pad": "y" * 20_000})

    assert isinstance(found, tuple)
    assert [fault.pointer for fault in found] == ["/a~1b", "/c~0d", "/e%20f", "/g h", "/é#?"]


NAMES = st.sampled_from(["a", "b", "c", "d"])
REQUIRED = st.lists(st.sampled_from([f"n{number}" for number in range(60)]), max_size=60, unique=True)
VALUES = st.lists(st.integers() | st.text(max_size=9), min_size=1, max_size=30, unique=True)
LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "object", "array", "null"])}),
    st.fixed_dictionaries({"required": REQUIRED}),
    st.fixed_dictionaries({"dependentRequired": st.fixed_dictionaries({"a": REQUIRED, "b": REQUIRED})}),
    st.fixed_dictionaries({"enum": VALUES}),
    st.just({"multipleOf": 0.01}),
    st.just({"maxLength": 1}),
    st.just({"pattern": "^[a-z]{3,40}x$"}),
    st.just(False),
)


def _composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=6)
    return st.one_of(
        st.fixed_dictionaries({"anyOf": several}),
        st.fixed_dictionaries({"oneOf": several, "unevaluatedProperties": st.just(False)}),
        st.fixed_dictionaries({"allOf": several, "unevaluatedItems": st.just(False)}),
        st.fixed_dictionaries({"items": inner, "uniqueItems": st.just(True)}),
        st.fixed_dictionaries({"contains": inner, "minContains": st.just(3)}),
        st.fixed_dictionaries({"additionalProperties": inner, "maxProperties": st.just(2)}),
        st.fixed_dictionaries({"patternProperties": st.fixed_dictionaries({"^[a-d]$": inner, ".": inner})}),
        st.fixed_dictionaries({"propertyNames": inner}),
        st.fixed_dictionaries({"if": inner, "then": inner, "else": st.fixed_dictionaries({"not": inner})}),
        st.fixed_dictionaries({"properties": st.fixed_dictionaries({"a": inner, "b": inner, "c": inner})}),
        st.fixed_dictionaries({"dependentSchemas": st.fixed_dictionaries({"a": inner})}),
    )


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=5) | st.dictionaries(NAMES, inner, max_size=4)


def _is_object(schema: object) -> bool:
    return isinstance(schema, dict)


SCHEMAS = st.recursive(LEAVES, _composed, max_leaves=25).filter(_is_object)
PARTS = st.recursive(st.integers() | st.text(max_size=20) | st.none() | st.just("x" * 3_000), _nested, max_leaves=20)
COUNTS = st.sampled_from([1, 10, 300, 5_000 if IS_FUZZING else 1_500])


@settings(
    max_examples=at_least(25), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(schema=SCHEMAS, part=PARTS, count=COUNTS, is_list=st.booleans())
def test_no_generated_refusal_takes_more_than_ten_bodies(
    schema: dict[str, Any], part: object, count: int, is_list: bool, refuser: Refuser
) -> None:
    """Ours: peak memory of a refusal is at most ten times its body, and its work on the loop is bounded (ISO-2)."""
    instance = [part] * count if is_list else {f"{'abcd'[number % 4]}{number}": part for number in range(count)}
    measured = refuser.measure(schema, instance)

    assert measured.peak_bytes <= 10 * measured.body_bytes + FLOOR, measured
