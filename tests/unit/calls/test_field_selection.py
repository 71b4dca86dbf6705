"""The argument `_fields`: its form, and what it selects."""

import json
from typing import Any

import pytest

from gateway.calls.field_selection import take_fields
from gateway.catalog.snapshots.field_argument import offers_fields, with_fields
from gateway.domain.http.requests import UpstreamResponse
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.errors import ArgumentsInvalid
from gateway.handlers.response_body.projection import select_fields
from gateway.handlers.response_body.result_processes import ResultProcesses

ACME = TenantId("ten_acme")
PETS: Any = {
    "items": [{"id": 1, "n": {"a/b": 2, "": 3}}, {"id": 12345678901234567890123, "n": None}],
    "total": 2,
    "~": 1,
}


async def selected(
    value: Any, *paths: str, kind: str = "application/json", status: int = 200
) -> tuple[Any, str | None]:
    """The body that is left, and the note."""
    answer = UpstreamResponse(status=status, content_type=kind, body=json.dumps(value).encode())
    found, note = await select_fields(ResultProcesses(), ACME, answer, paths)
    return json.loads(found.body), note


@pytest.mark.parametrize(
    ("paths", "left"),
    [
        (["/items/*/id"], {"items": [{"id": 1}, {"id": 12345678901234567890123}]}),
        (["/items/0/n/a~1b", "/total"], {"items": [{"n": {"a/b": 2}}], "total": 2}),
        (["/items/0/n/"], {"items": [{"n": {"": 3}}]}),
        (["/~0"], {"~": 1}),
        (["/items", "/items/0/id"], {"items": PETS["items"]}),
    ],
)
async def test_parts_stay_in_their_containers(paths: list[str], left: Any) -> None:
    """Ours: a selected part has the path that it had, and numbers keep their digits (OAS-10)."""
    assert await selected(PETS, *paths) == (left, None)


async def test_a_missing_pointer_is_named() -> None:
    """Ours: a caller learns which pointer led nowhere (OAS-10)."""
    left, note = await selected(PETS, "/total", "/items/7/id", "/items/*/nope", "/total/deep")

    assert left["total"] == 2
    assert note == "The result has nothing at '/items/7/id', '/items/*/nope', '/total/deep'."


@pytest.mark.parametrize(("value", "more"), [("text", {}), (7, {}), ([], {"kind": "text/plain"})])
async def test_other_results_stay_complete_and_report_it(value: Any, more: dict[str, Any]) -> None:
    """Ours: a call that has run does not lose its result (OAS-10)."""
    if more:
        answer = UpstreamResponse(status=200, content_type="text/plain", body=b"a,b\n")
        found, note = await select_fields(ResultProcesses(), ACME, answer, ("/a",))
        assert found is answer
    else:
        left, note = await selected(value, "/a")
        assert left == value
    assert note is not None
    assert note.startswith("_fields had no effect")


async def test_errors_stay() -> None:
    """Ours: an error is read whole (OAS-10)."""
    assert await selected({"error": 1}, "/x", status=404) == ({"error": 1}, None)


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ([], "/_fields"),
        (5, "/_fields"),
        (["/a"] * 51, "/_fields"),
        ([""], "/_fields/0"),
        (["/a", "b"], "/_fields/1"),
        (["/~2"], "/_fields/0"),
        ([5], "/_fields/0"),
        (["/" + "x" * 600], "/_fields/0"),
    ],
)
def test_other_forms_are_refused_with_their_place(fields: object, place: str) -> None:
    """Ours: nothing is called with a selection that cannot be made (OAS-10)."""
    with pytest.raises(ArgumentsInvalid) as refused:
        take_fields({"id": 1, "_fields": fields})

    assert refused.value.faults[0].pointer == place


@pytest.mark.parametrize("fields", ["/a", '["/a"]'])
def test_one_path_and_json_text_are_read(fields: str) -> None:
    """Ours: the argument is read as those of the tool are (CLN-2)."""
    assert take_fields({"id": 1, "_fields": fields}) == ({"id": 1}, ("/a",))


def test_null_selects_everything() -> None:
    """Ours: null is absent, as for other optional arguments (OAS-10)."""
    assert take_fields({"id": 1, "_fields": None}) == ({"id": 1}, ())


async def test_ten_thousand_missing_parts_cost_a_bounded_search() -> None:
    """Ours: a missing path is named as far as the search may go (ISO-2)."""
    left, note = await selected({"a": [[1] * 100] * 300}, *[f"/a/*/*/x{number}" for number in range(50)])

    assert len(left["a"]) == 300
    assert note is None or len(note) < 300


def test_a_listed_tool_has_the_argument_and_no_output_schema() -> None:
    """Ours: a selection need not match what the document promises (OAS-10)."""
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": False}
    listed = json.loads(with_fields(json.dumps({"name": "x", "inputSchema": schema, "outputSchema": {}}).encode()))

    assert list(listed["inputSchema"]["properties"]) == ["id", "_fields"]
    assert "outputSchema" not in listed


@pytest.mark.parametrize(
    ("schema", "is_offered"),
    [
        ({"properties": {"_fields": {}}}, False),
        ({"properties": {"body": {"properties": {"_fields": {}}}}}, True),
        ({"properties": {"part": {"enum": ["_fields"]}}, "required": ["part"]}, True),
        ({}, True),
    ],
)
def test_only_an_argument_of_this_name_takes_its_place(schema: dict[str, object], is_offered: bool) -> None:
    """Ours: a nested property or a value named `_fields` does not disable the selection (OAS-10)."""
    definition = json.dumps({"name": "x", "inputSchema": {"type": "object", **schema}}).encode()
    tool = Tool(name="x", definition=definition, safety=Safety.SAFE, safety_reasons=(), origin=PrimitiveOrigin.SOURCE)

    assert offers_fields(tool) is is_offered
