"""From nothing to the first call: `gateway try`, and the example that `make run` starts."""

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx
import pytest

from examples.library.upstream import Library, build_upstream
from examples.serving import serving as serving_upstream
from gateway.cli.client.mcp_endpoint import McpClient
from gateway.domain.tenancy.client_setup import CLIENTS
from tests.behaviour.cli.conftest import ROOT, environment, serving
from tests.support.commands import run_gateway

_DOCUMENT = ROOT / "examples" / "library" / "openapi.yaml"


def _read_until(printed: IO[str], last: str) -> str:
    """Output of the command, up to a line that starts like this."""
    lines: list[str] = []
    for line in printed:
        lines.append(line)
        if line.startswith(last):
            return "".join(lines)
    raise AssertionError(f"it ended without {last!r}:\n{''.join(lines)}")


def _value(lines: str, name: str) -> str:
    return next(line[len(name) :].strip() for line in lines.splitlines() if line.startswith(name))


def _run_line(line: str) -> Any:
    """The result that a printed line of curl gets."""
    command = ["bash", "-c", f"{line} --noproxy '*'"]
    shown = subprocess.run(command, capture_output=True, check=True, env=environment(), timeout=30)
    return json.loads(shown.stdout)["result"]


def _first_result(url: str, key: str, tool: str) -> dict[str, object]:
    with McpClient(url, key) as endpoint:
        return endpoint.call(endpoint.find(tool), {})


def test_try_serves_a_document_with_a_ready_line_for_each_client(tmp_path: Path) -> None:
    """Ours: one command from a document to its first call, and the printed curl line works as it is (OAS-1, SRV-1)."""
    with serving_upstream(build_upstream(Library()), port=0) as port:
        base_url = f"http://127.0.0.1:{port}"
        with serving("try", str(_DOCUMENT), "--base-url", base_url, folder=tmp_path) as lines:
            printed = _read_until(lines, "a safe call")
            url, key = _value(printed, "MCP URL"), _value(printed, "header").removeprefix("Authorization: Bearer ")
            result: Any = _first_result(url, key, "getOpeningHours")
            if shutil.which("curl") is not None:
                assert len(_run_line(_value(printed, "curl"))["tools"]) == 10
                assert _run_line(_value(printed, "a safe call"))["isError"] is False

    counts = [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("10 ")]
    assert len(counts) == 2
    assert all(line in printed for line in counts), "the README shows other figures"
    assert f"127.0.0.1:{port} on this machine" in printed
    assert all(client in printed for client in ("Claude Code", "Cursor", "VS Code"))
    assert result["structuredContent"]["days"][0]["day"] == "Monday"
    assert list(tmp_path.iterdir()) == []


def test_try_with_json_prints_one_object(tmp_path: Path) -> None:
    """Ours: `--json` is for programs: standard output holds nothing else. `--expose` is that of an import, and
    the tools that are counted are those that are listed (CLI-1, OAS-5).
    """
    with serving("try", str(_DOCUMENT), "--expose", "both", "--json", folder=tmp_path) as lines:
        facts: Any = json.loads(_read_until(lines, "}"))
        with McpClient(facts["url"], facts["key"]) as endpoint:
            listed = [*endpoint.tools()]

    assert facts["report"]["counts"]["ok"] == 10
    assert facts["tools"] == len(listed) == 17
    assert facts["tools_list_tokens_estimate"] == round(facts["tools_list_bytes"] / 4)
    assert set(facts["clients"]) == {client.name for client in CLIENTS if client.takes_key}


@pytest.mark.parametrize(
    ("name", "text", "code", "reported"),
    [
        ("broken.yaml", "openapi: 3.1.0\npaths:\n  /a: [\n", 1, "line 4"),
        ("missing.json", None, 2, "cannot read"),
    ],
)
async def test_try_ends_on_a_text_that_is_no_document(
    tmp_path: Path, name: str, text: str | None, code: int, reported: str
) -> None:
    """Ours: no server is started for an invalid document, and the refusal names place and reason (OAS-1)."""
    if text is not None:
        (tmp_path / name).write_text(text)

    done = await run_gateway(["try", name], folder=tmp_path, variables=environment())

    assert done.code == code, done.err
    assert reported in done.err
    assert "Starting the gateway" not in done.err
    assert "Traceback" not in done.err
    assert done.out == ""


async def test_try_ends_on_a_document_without_a_tool(tmp_path: Path) -> None:
    """Ours: no client is pointed at nothing; the report is shown and the option that is missing is named (OAS-3)."""
    paths = {"/a": {"get": {"responses": {"200": {"description": "ok"}}}}}
    document = {"openapi": "3.0.3", "info": {"title": "t", "version": "1"}, "paths": paths}
    (tmp_path / "nowhere.json").write_text(json.dumps(document))

    done = await run_gateway(["try", "nowhere.json"], folder=tmp_path, variables=environment())

    assert done.code == 1
    assert done.out.startswith("1 operation: 0 ok, 0 degraded, 1 skipped\n0 tools")
    assert "--base-url" in done.err.splitlines()[-1]
    assert "MCP URL" not in done.out


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Output of one start of the example."""

    key: str
    counted: Any
    source: Any


def _start_example(folder: Path) -> Start:
    arguments = ("--port", "0", "--upstream-port", "0", "--data-dir", str(folder))
    with serving(*arguments, module="examples.run", folder=ROOT) as lines:
        printed = _read_until(lines, "curl")
        url, key = _value(printed, "MCP URL"), _value(printed, "header").removeprefix("Authorization: Bearer ")
        operator = {"Authorization": f"Bearer {(folder / 'operator-key').read_text().strip()}"}
        source = url.replace("/t/example/mcp", "/admin/v1/tenants/example/sources/library")
        found = httpx.get(source, headers=operator, trust_env=False).raise_for_status()
        return Start(key=key, counted=_first_result(url, key, "countStock"), source=found.json())


@pytest.mark.early
def test_the_example_starts_again_with_its_key_or_a_new_one_that_works(tmp_path: Path) -> None:
    """Ours: `make run` works again and again; a client stays configured unless its key was lost (OAS-1, SRV-1)."""
    folder = tmp_path / "kept"
    first, second = _start_example(folder), _start_example(folder)
    (folder / "example-key").write_text("mcpg_live_broken\n")
    third = _start_example(folder)

    assert first.key == second.key
    assert third.key not in {first.key, "mcpg_live_broken"}
    assert {start.counted["structuredContent"]["books"] for start in (first, second, third)} == {4}
    assert {start.source["status"]["title"] for start in (first, second, third)} == {"Village Library"}
    assert len({start.source["id"] for start in (first, second, third)}) == 1
    assert (folder / "example-key").stat().st_mode & 0o077 == 0
