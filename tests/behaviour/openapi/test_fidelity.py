"""Every wire case through a real gateway, from the admin API to the bytes that the upstream reads."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.behaviour.openapi.conftest import OpenAPIBench
from tests.support.fidelity import (
    Case,
    answer_with,
    arguments_for,
    fidelity_cases,
    request_differences,
    result_differences,
    tool_differences,
)

SHARES = 4
"""So that two processes can divide the work."""


@pytest.mark.parametrize("share", range(SHARES))
async def test_every_case_is_right(bench: OpenAPIBench, share: int) -> None:
    """OpenAPI: requests, results and listed tools are as the document describes them (OAS-2)."""
    wrong = {case.name: found for case in fidelity_cases()[share::SHARES] if (found := await _differences(bench, case))}

    assert wrong == {}


async def _differences(bench: OpenAPIBench, case: Case) -> list[str]:
    report = await bench.import_document(
        case.document(bench.upstreams[0].url, bench.upstreams[1].url), case.credentials
    )
    tools = await bench.tools()
    found = list(tool_differences(case.content.get("expect_tools", {}), list(tools.values())))
    for call in case.calls:
        found += await _call_differences(bench, call, report, tools)
    return found


async def _call_differences(
    bench: OpenAPIBench, call: Mapping[str, Any], report: Mapping[str, Any], tools: Mapping[str, Any]
) -> list[str]:
    method, path = call["op"]
    name = next(item["tool"] for item in report["operations"] if [item["method"], item["path"]] == [method, path])
    if name is None:
        return ["no tool for the operation"]
    answer_with(bench.upstream, call.get("respond"))
    answer_with(bench.upstreams[1], call.get("respond"))
    result = await bench.call(name, arguments_for(tools[name]["inputSchema"], call["args"]))
    expected = call["expect"]
    wanted: dict[str, Any] = dict(expected.get("result") or {"is_error": False})
    other = wanted.pop("expect_alt_request", None)
    differences = list(request_differences(expected["request"], seen := bench.seen()))
    if differences and other is not None and not list(request_differences(other, seen)):
        return []
    return differences + list(result_differences(wanted, result))
