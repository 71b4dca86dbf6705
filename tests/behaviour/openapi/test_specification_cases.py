"""Places and forms of values of the OpenAPI Specification, case by case through a real gateway."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.behaviour.openapi.conftest import SLUG, OpenAPIBench
from tests.support.specification import (
    Case,
    Group,
    answer_as,
    differences,
    file_names,
    listed_differences,
    read_groups,
)
from tests.support.upstream import Seen

SHARES = 2
"""So that two processes can divide the work."""


@pytest.mark.parametrize("share", range(SHARES))
async def test_every_case_of_the_specification_is_right(bench: OpenAPIBench, share: int) -> None:
    """OpenAPI 2.0 to 3.2: the bytes on the wire, and the result of the response (OAS-2)."""
    await bench.gateway.lift_rate(SLUG)
    wrong: dict[str, list[str]] = {}
    groups = [group for stem in file_names()[share::SHARES] for group in read_groups(stem)]
    for group in groups:
        wrong |= await _wrong_cases(bench, group)

    assert groups
    assert wrong == {}


@pytest.mark.parametrize(
    ("expected", "count"),
    [
        ({"target": "?v=1", "text": "a=1", "headers": {"x-a": "1"}, "result": {"text": "fine"}}, 0),
        ({"target": "?v=2"}, 1),
        ({"headers": {"x-a": None}, "cookie": "a=1"}, 2),
        ({"text": "b", "type": "text/plain", "form": [["a", "2"]]}, 3),
        ({"origin": 2}, 1),
        ({"method": "put"}, 1),
        ({"result": {"error": True, "text": "other", "contains": "x", "structured": {}}}, 4),
        ({"result": {"meta": {"status": 201}}}, 1),
        ({"refused": ""}, 1),
    ],
)
def test_differences_from_a_case_are_reported(expected: Mapping[str, Any], count: int) -> None:
    """Ours: the judge of these cases sees every difference (OAS-2)."""
    case = Case(name="c", version="3.1.0", content={"method": "post", **expected})
    headers = (("X-A", "1"), ("Content-Type", "application/x-www-form-urlencoded"))
    seen = Seen(method="POST", target="/c?v=1", headers=headers, body=b"a=1")
    result = {"content": [{"type": "text", "text": "fine"}], "isError": False}

    assert len(list(differences(case, [(1, seen)], result))) == count
    assert list(differences(case, [], result))


def test_differences_of_a_list_from_a_case_are_reported() -> None:
    """Ours: the judge of lists sees another value and a missing one (OAS-2)."""
    expected = {"/description": "Words.", "/inputSchema/properties/v/examples": [1], "/title": "T"}
    case = Case(name="c", version="3.1.0", content={"listed": expected})
    tool = {"description": "Words.", "inputSchema": {"properties": {"v": {"examples": [2]}}}}

    assert len(list(listed_differences(case, tool))) == 2


async def _wrong_cases(bench: OpenAPIBench, group: Group) -> dict[str, list[str]]:
    report = await bench.import_document(group.document(bench.upstream.url, bench.upstreams[1].url), group.credentials)
    fates = {item["path"]: item for item in report["operations"]}
    notes = json.dumps(report["notes"])
    found = {case.name: await _differences(bench, case, fates[case.path], notes) for case in group.cases}
    if any("listed" in case.content for case in group.cases):
        tools = await bench.tools()
        for case in group.cases:
            found[case.name] += listed_differences(case, tools.get(fates[case.path]["tool"], {}))
    return {name: items for name, items in found.items() if items}


async def _differences(bench: OpenAPIBench, case: Case, fate: Mapping[str, Any], notes: str) -> list[str]:
    reasons, expected = json.dumps(fate["reasons"]), case.content.get("report")
    if (expected is None and fate["reasons"]) or (expected is not None and expected not in reasons + notes):
        return [f"the report has {fate['status']} {reasons}"]
    if fate["tool"] is None:
        return [] if case.content.get("skipped") else ["no tool"]
    for upstream in bench.upstreams:
        answer_as(upstream, case.content.get("answer"))
    result = await bench.call(fate["tool"], case.arguments)
    return list(differences(case, bench.seen(), result))
