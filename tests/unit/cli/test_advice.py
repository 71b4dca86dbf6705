"""Advice on documents that make no tool, or expensive ones."""

from collections.abc import Sequence

import pytest

from gateway.cli.advice import advise, explain_no_tools
from gateway.cli.commands.servers import try_spec
from gateway.cli.input.json_fields import JsonObject

_RELATIVE = "the server URL '/v1' is relative and no base URL is given"


def _report(operations: Sequence[tuple[str, str, str | None, str]], *, tokens: int = 100) -> JsonObject:
    return {
        "operations": [
            {"method": method, "path": path, "tool": tool, "status": "ok" if tool else "skipped", "reasons": [reason]}
            for method, path, tool, reason in operations
        ],
        "tools_listed": sum(tool is not None for _, _, tool, _ in operations),
        "estimated_tokens": tokens,
    }


@pytest.mark.parametrize(
    ("operations", "reported"),
    [
        ([], "declares no operation"),
        ([("get", "/a", None, _RELATIVE)], "--base-url"),
        ([("get", "/a", None, "a server has no `url`")], "--base-url"),
        ([("get", "/a", None, "not selected: no include rule matches")], "--include"),
        ([("get", "/a", None, "it has more arguments\x1b[2J than a tool can have")], "more arguments\\x1b[2J than"),
    ],
)
def test_no_tool_at_all_is_explained(operations: list[tuple[str, str, str | None, str]], reported: str) -> None:
    """Ours: the error for a document without tools names the option to give (OAS-3)."""
    assert reported in explain_no_tools(_report(operations))


def test_operations_without_a_server_beside_others_are_advised_on() -> None:
    """Ours: a part of the document that is not reachable is not passed over (OAS-3)."""
    report = _report([("get", "/a", "a", ""), ("get", "/b", None, _RELATIVE)])

    assert "--base-url" in advise(report)
    assert advise(_report([("get", "/a", "a", "")])) == ""


def test_a_large_list_is_advised_on_with_options_that_try_has() -> None:
    """Ours: the largest parts are named, each as the option that takes it alone (OAS-3)."""
    paths = [("get", f"/api/v1/repos/{n}", f"r{n}", "") for n in range(7)]
    paths += [("post", f"/api/v1/orgs/{n}", f"o{n}", "") for n in range(4)]
    paths += [("get", "/api/v1/'; rm -rf ~ #/x", "bad", "")]
    first, *rest = advise(_report(paths, tokens=1_200_000)).splitlines()
    lines = [line.split(maxsplit=2) for line in rest]

    assert "1,200,000 tokens" in first
    assert lines[0][:2] == ["--expose", "query"]
    assert lines[1] == ["--include-method", "GET", "8 of 12 tools, which only read"]
    assert lines[2] == ["--include-path", "'/api/v1/repos/*'", "7 of 12 tools"]
    assert lines[3] == ["--include-path", "'/api/v1/orgs/*'", "4 of 12 tools"]
    assert len(lines) == 4, "a path that a shell would read is not offered"
    offered = {option for parameter in try_spec.params for option in parameter.opts}
    assert {line[0] for line in lines} <= offered


def test_a_single_large_path_has_no_parts() -> None:
    """Ours: advice never fails on what a document is like (OAS-3)."""
    for paths in (
        [("get", "/a", "a", "")],
        [("get", "/a/b", "a", ""), ("get", "/a/b", "b", "")],
        [("get", "", "a", "")],
    ):
        assert "--expose query" in advise(_report(paths, tokens=20_000))
