"""The golden files of the surface, and the classes of differences that the differ reports."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.surface import actions, commands, rest, tables
from tests.surface.canonical import write
from tests.surface.differences import Difference, report
from tests.surface.golden import GOLDEN
from tests.surface.schemas import SchemaComparison

Json = Mapping[str, Any]
TEXT = {"type": "string"}


def test_the_golden_files_are_the_surface_of_the_tree() -> None:
    """Ours: the diff of the golden files shows what a commit changes for users (`python -m tests.surface --write`)."""
    today = {golden.name: golden.surface() for golden in GOLDEN}
    found = [one for golden in GOLDEN for one in golden.compare(golden.load(), today[golden.name])]

    assert report(found) == ""
    assert [golden.name for golden in GOLDEN if golden.path.read_text() != write(today[golden.name])] == []


def _object(required: tuple[str, ...] = (), /, **properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": [*required]}


def _of_schemas(before: Json, after: Json, *, is_sent: bool) -> list[str]:
    """The differences of the member `a` of an object, or of a whole object."""
    old, new = ({"O": one if "properties" in one else _object(a=one)} for one in (before, after))
    reference = {"$ref": "#/components/schemas/O"}
    return list(map(str, SchemaComparison(old, new).compare(reference, reference, "body", is_sent=is_sent)))


@pytest.mark.parametrize(
    ("before", "after", "sent", "shown"),
    [
        (_object(a=TEXT), _object(), "BREAKING removed O.a", "BREAKING removed O.a"),
        (_object(), _object(a=TEXT), "added O.a", "added O.a"),
        (_object(), _object(("a",), a=TEXT), "BREAKING added O.a: required", "added O.a"),
        (_object(a=TEXT), _object(("a",), a=TEXT), "BREAKING changed O.a: is required", "changed O.a: is required"),
        (_object(("a",), a=TEXT), _object(a=TEXT), "changed O.a: is optional", "BREAKING changed O.a: is optional"),
        (
            {"anyOf": [TEXT, {"type": "null"}]},
            TEXT,
            "BREAKING changed O.a: refuses null",
            "changed O.a: is never null",
        ),
        (
            TEXT,
            {"anyOf": [TEXT, {"type": "null"}]},
            "changed O.a: accepts null",
            "BREAKING changed O.a: may be null",
        ),
        ({}, TEXT, "BREAKING changed O.a: refuses anything", "changed O.a: is never anything"),
        (
            TEXT | {"maxLength": 9},
            TEXT | {"maxLength": 8},
            "BREAKING changed O.a: maxLength 9 → 8",
            "changed O.a: maxLength 9 → 8",
        ),
        (TEXT | {"maxLength": 8}, TEXT, "changed O.a: maxLength 8 → None", "changed O.a: maxLength 8 → None"),
        (
            {"type": "integer"},
            {"type": "integer", "minimum": 0},
            "BREAKING changed O.a: minimum None → 0",
            "changed O.a: minimum None → 0",
        ),
        (
            {"type": "array", "items": TEXT},
            {"type": "array", "items": TEXT | {"pattern": "^a"}},
            "BREAKING changed O.a[]: pattern None → ^a",
            "changed O.a[]: pattern None → ^a",
        ),
        (
            TEXT | {"enum": ["x", "y"]},
            TEXT | {"enum": ["x"]},
            "BREAKING changed O.a: has no value y",
            "changed O.a: has no value y",
        ),
        (
            TEXT | {"enum": ["x"]},
            TEXT | {"enum": ["x", "y"]},
            "changed O.a: has the value y",
            "changed O.a: has the value y",
        ),
        (
            TEXT | {"default": "x"},
            TEXT | {"default": "y"},
            "BREAKING changed O.a: default x → y",
            "changed O.a: default x → y",
        ),
        (
            {"type": "object"},
            {"type": "object", "additionalProperties": False},
            "BREAKING changed O.a: additionalProperties True → False",
            "changed O.a: additionalProperties True → False",
        ),
        (
            TEXT | {"description": "An a."},
            TEXT | {"description": "A b."},
            "changed O.a: description: 'An a.' → 'A b.'",
            "changed O.a: description: 'An a.' → 'A b.'",
        ),
    ],
)
def test_a_schema_breaks_its_sender_or_its_reader(before: Json, after: Json, sent: str, shown: str) -> None:
    """Ours: narrower requests and wider responses are breaking; the opposite is not."""
    assert _of_schemas(before, after, is_sent=True) == [sent]
    assert _of_schemas(before, after, is_sent=False) == [shown]
    assert _of_schemas(before, before, is_sent=True) == []


def test_a_schema_with_another_name_is_compared_by_its_content() -> None:
    """Ours: a derived model with another name shows what it changes, not a removed and an added schema."""
    old = {"Old": _object(a=TEXT, next={"$ref": "#/components/schemas/Old"})}
    new = {"New": _object(a=TEXT | {"maxLength": 3}, next={"$ref": "#/components/schemas/New"})}
    found = SchemaComparison(old, new).compare(
        {"$ref": "#/components/schemas/Old"}, {"$ref": "#/components/schemas/New"}, "body", is_sent=True
    )

    assert {str(one) for one in found} == {"changed Old: is New", "BREAKING changed Old.a: maxLength None → 3"}


def _api(*, shared: Json | None = None, schemas: Json | None = None, **operations: Json) -> Json:
    common = {"parameters": shared or {}, "refusals": {}}
    named: dict[str, Json] = {f"GET /{name}": {"responses": {}, **one} for name, one in operations.items()}
    return {"about": {}, "shared": common, "operations": named, "schemas": schemas or {}}


def _query(**more: object) -> Json:
    return {"name": "q", "in": "query", "schema": TEXT, **more}


def _response(status: str, *, header: bool | None = None, schema: Json | None = None) -> Json:
    headers = {} if header is None else {"headers": {"ETag": {"required": header}}}
    content = {} if schema is None else {"content": {"application/json": {"schema": schema}}}
    return {"responses": {status: headers | content}}


def _body(*media_types: str, required: bool = False) -> Json:
    return {"requestBody": {"required": required, "content": {one: {"schema": TEXT} for one in media_types}}}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (_api(a={}, b={}), _api(a={}), "BREAKING removed GET /b"),
        (_api(a={}), _api(a={}, b={}), "added GET /b"),
        (_api(a={"summary": "x"}), _api(a={"summary": "y"}), "changed GET /a: summary 'x' → 'y'"),
        (
            _api(a={"who": ["operator", "admin"]}),
            _api(a={"who": ["operator"]}),
            "BREAKING changed GET /a: refuses the scope admin",
        ),
        (_api(a={"who": []}), _api(a={"who": ["mcp"]}), "changed GET /a: accepts the scope mcp"),
        (_api(a={}), _api(a={"bodyBytes": 10}), "BREAKING changed GET /a: bytes of a body 1048576 → 10"),
        (
            _api(a={"refusals": ["409"]}),
            _api(a={"refusals": []}),
            "changed GET /a: documented refusals differ in 409",
        ),
        (_api(a={"parameters": {"query q": _query()}}), _api(a={}), "BREAKING removed GET /a query q"),
        (_api(a={}), _api(a={"parameters": {"query q": _query()}}), "added GET /a query q"),
        (
            _api(a={}),
            _api(a={"sharedParameters": ["query q"]}, shared={"query q": _query(required=True)}),
            "BREAKING added GET /a query q: required",
        ),
        (
            _api(a={"sharedParameters": ["query q"]}, shared={"query q": _query()}),
            _api(a={"parameters": {"query q": _query(schema=TEXT | {"maxLength": 1})}}),
            "BREAKING changed GET /a query q: maxLength None → 1",
        ),
        (_api(a={}), _api(a=_body("text/plain")), "BREAKING changed GET /a: has a body"),
        (
            _api(a=_body("text/plain")),
            _api(a=_body("text/plain", required=True)),
            "BREAKING changed GET /a: needs a body",
        ),
        (
            _api(a=_body("text/plain", "text/csv")),
            _api(a=_body("text/plain")),
            "BREAKING changed GET /a: refuses bodies of the type text/csv",
        ),
        (_api(a=_response("201")), _api(a={}), "BREAKING changed GET /a: never responds 201"),
        (
            _api(a=_response("200", header=True)),
            _api(a=_response("200", header=False)),
            "BREAKING changed GET /a 200: header ETag",
        ),
        (
            _api(a=_response("200", schema=TEXT)),
            _api(a=_response("200", schema={"type": "integer"})),
            "BREAKING changed GET /a 200: may be integer",
        ),
    ],
)
def test_an_operation_breaks_its_clients(before: Json, after: Json, expected: str) -> None:
    """Ours: a client of the former document that is refused, or misses a part of a response, is broken."""
    assert expected in [str(one) for one in rest.compare(before, after)]
    assert list(rest.compare(before, before)) == []


def _tree(*arguments: Json, help: str = "Does it.", **options: Json) -> Json:  # noqa: A002  # the member's name
    command = {"help": help, "arguments": [*arguments], "options": {f"--{name}": one for name, one in options.items()}}
    return {"commands": {"gateway it": command}, "shared": {}}


_CHOICE = {"type": "choice", "choices": ["a", "b"]}
_NAME = {"name": "NAME", "required": True, "nargs": 1, "type": "text"}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (_tree(), {"commands": {}, "shared": {}}, ["BREAKING removed gateway it"]),
        ({"commands": {}, "shared": {}}, _tree(), ["added gateway it"]),
        (_tree(), _tree(help="Does that."), ["changed gateway it: help"]),
        (_tree(_NAME), _tree(), ["BREAKING removed gateway it NAME"]),
        (_tree(), _tree(_NAME), ["BREAKING added gateway it NAME: required"]),
        (_tree(), _tree({**_NAME, "required": False}), ["added gateway it NAME"]),
        (
            _tree({**_NAME, "required": False}),
            _tree(_NAME),
            ["BREAKING changed gateway it NAME: required False → True"],
        ),
        (_tree(_NAME), _tree({**_NAME, "name": "ID"}), ["changed gateway it NAME: name NAME → ID"]),
        (_tree(x=TEXT), _tree(), ["BREAKING removed gateway it --x"]),
        (_tree(), _tree(x=TEXT), ["added gateway it --x"]),
        (_tree(), _tree(x={"type": "text", "required": True}), ["BREAKING added gateway it --x: required"]),
        (
            _tree(x=_CHOICE),
            _tree(x={**_CHOICE, "choices": ["a"]}),
            ["BREAKING changed gateway it --x: choices ['a', 'b'] → ['a']"],
        ),
        (
            _tree(x={**_CHOICE, "choices": ["a"]}),
            _tree(x=_CHOICE),
            ["changed gateway it --x: choices ['a'] → ['a', 'b']"],
        ),
        (
            _tree(x={"type": "integer range", "range": [0, 9]}),
            _tree(x={"type": "integer range", "range": [0, 8]}),
            ["BREAKING changed gateway it --x: range [0, 9] → [0, 8]"],
        ),
        (
            _tree(x={"type": "text", "default": "1"}),
            _tree(x={"type": "text", "default": "2"}),
            ["BREAKING changed gateway it --x: default 1 → 2"],
        ),
        (
            _tree(x={"type": "text", "multiple": True}),
            _tree(x=TEXT | {"type": "text"}),
            ["BREAKING changed gateway it --x: multiple True → None"],
        ),
        (
            _tree(x={"type": "text", "spellings": ["--x", "-x"]}),
            _tree(x={"type": "text", "spellings": ["--x"]}),
            ["BREAKING changed gateway it --x: spellings ['--x', '-x'] → ['--x']"],
        ),
        (
            _tree(x={"type": "text"}),
            _tree(x={"type": "text", "hidden": True}),
            ["changed gateway it --x: hidden None → True"],
        ),
    ],
)
def test_a_command_breaks_its_callers(before: Json, after: Json, expected: list[str]) -> None:
    """Ours: a command line that was accepted and is refused, or means something else, is broken."""
    assert [str(one) for one in commands.compare(before, after)] == expected
    assert list(commands.compare(before, before)) == []


def test_a_column_breaks_the_former_release() -> None:
    """Ours: replicas of two releases use one database, so a removed or changed column is breaking."""
    before = {"t": {"a": "TEXT", "b": "TEXT"}, "u": {}}
    after = {"t": {"a": "INTEGER", "c": "TEXT"}}

    assert [str(one) for one in tables.compare(before, after)] == [
        "BREAKING removed u",
        "BREAKING removed t.b",
        "added t.c: TEXT",
        "BREAKING changed t.a: TEXT → INTEGER",
    ]


def test_the_report_groups_differences_and_counts_breaking_ones() -> None:
    """Ours: a reviewer reads the breaking differences of each group first."""
    found = [
        Difference(group="routes", name="GET /b", change="added"),
        Difference(group="options", name="gateway it --x", change="removed", is_breaking=True),
        Difference(group="routes", name="GET /a", change="changed", detail="summary", is_breaking=True),
        Difference(group="routes", name="GET /b", change="added"),
    ]

    assert report(found).splitlines() == [
        "options:",
        "  BREAKING removed gateway it --x",
        "routes:",
        "  BREAKING changed GET /a: summary",
        "  added GET /b",
        "3 differences, 2 breaking for a client of the former form",
    ]
    assert report([]) == ""


def test_an_action_that_an_operation_no_longer_writes_is_breaking() -> None:
    """Ours: readers of the trail look for names of actions; a known name may be written by a new operation."""
    golden: Json = {
        "former": {"operations": {"POST /a": ["a.create"], "DELETE /a": ["a.delete"]}},
        "new": {"actions": []},
    }
    today = {"POST /a": ["a.make"], "PUT /a": ["a.create"], "DELETE /a": ["a.delete"]}

    assert [str(one) for one in actions.compare(golden, today)] == [
        "BREAKING removed POST /a a.create",
        "added POST /a a.make",
    ]


def test_an_event_with_another_form_is_a_difference() -> None:
    """Ours: replicas of the former release read the events of this one, so names and members stay."""
    golden = {"former": {"events": {"e": ["id", "tenant"]}}, "new": {"events": {"e": ["at"]}}}

    assert list(actions.compare_events(golden, {"e": ["at", "id", "tenant"]})) == []
    found = actions.compare_events(golden, {"e": ["id", "kind", "tenant"]})
    assert [str(one) for one in found] == ["BREAKING removed at", "added kind"]
