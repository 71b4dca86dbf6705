"""Real clients use a tenant: each lists, calls, reads, gets prompts, completes, answers a question and receives
notifications.
"""

import json
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.conformance.environments import find_python
from tests.conformance.node import clean_environment, find_packages
from tests.conformance.suite_gateway import SuiteGateway, open_hall
from tests.support.gateway import OPERATOR_KEY
from tests.support.servers import TestServers

PATIENCE_S = 90
LATE_PROGRESS = "Error: Received a progress notification for an unknown token: "
"""Progress that the client read together with the response, which it handles first
(modelcontextprotocol/typescript-sdk#2580).
"""
HERE = Path(__file__).parent
INSPECTOR = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"


@pytest.fixture(scope="module")
def packages() -> Path:
    """The clients of npm."""
    return find_packages("clients")


@pytest.fixture(scope="module")
async def suite_gateway(servers: TestServers, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[SuiteGateway]:
    """Two replicas behind a balancer, and the tenant."""
    folder = tmp_path_factory.mktemp("hall")
    with servers.database() as database:
        async with open_hall(database.app_url, servers.empty_redis(), folder) as opened:
            yield opened


def _environment(suite_gateway: SuiteGateway, packages: Path) -> dict[str, str]:
    return clean_environment() | {
        "EXAM_PACKAGES": str(packages),
        "EXAM_AUTHORIZATION": f"Bearer {suite_gateway.tenant.key}",
        "EXAM_OPERATOR": f"Bearer {OPERATOR_KEY}",
        "EXAM_UPDATED": f"{suite_gateway.origin}/admin/v1/tenants/{suite_gateway.tenant.slug}/resources/updated",
        "HOME": str(packages),
    }


async def _run(command: Sequence[str], environment: dict[str, str]) -> Any:
    """Output of a client."""
    with anyio.fail_after(PATIENCE_S):
        ended = await anyio.run_process(list(command), env=environment, check=False)
    assert ended.returncode == 0, ended.stdout.decode() + ended.stderr.decode()
    return json.loads(ended.stdout)


def _check(seen: dict[str, Any]) -> None:
    """Every client saw what is there."""
    assert {"test_simple_text", "test_reconnection"} <= set(seen.pop("tools"))
    assert seen == {
        "called": "This is a simple text response for testing.",
        "progress": [0, 50, 100],
        "read": "This is the content of the static text resource.",
        "prompt": "Prompt with arguments: arg1='a', arg2='b'",
        "completed": ["paris", "park", "party"],
        "elicited": "Hello, Ada!",
        "told": "test://watched-resource",
    }


@pytest.mark.parametrize(("mode", "era"), [("legacy", "legacy"), ("2026-07-28", "modern")])
async def test_the_sdk_for_typescript_walks_a_tenant(
    suite_gateway: SuiteGateway, packages: Path, mode: str, era: str
) -> None:
    """MCP: the other official SDK works in both eras, each request at another replica; what it cancels in a session is
    not answered, and it comes back to that stream once (SRV-1).
    """
    seen = await _run(["node", str(HERE / "walk.mjs"), suite_gateway.url, mode], _environment(suite_gateway, packages))

    assert seen.pop("era") == era
    assert seen.pop("errors") == []
    assert seen.pop("resumed", None) == (204 if era == "legacy" else None)
    _check(seen)


@pytest.mark.parametrize(
    ("mode", "era"), [pytest.param("legacy", "legacy", marks=pytest.mark.long), ("2026-07-28", "modern")]
)
async def test_the_sdk_for_typescript_walks_a_tenant_over_the_bridge(
    suite_gateway: SuiteGateway, packages: Path, mode: str, era: str
) -> None:
    """MCP: the same on standard streams, with `gateway stdio` between the client and the replicas (SRV-1)."""
    command = json.dumps([sys.executable, "-m", "gateway", "stdio", "--url", suite_gateway.url])
    environment = _environment(suite_gateway, packages) | {
        "EXAM_COMMAND": command,
        "GATEWAY_KEY": suite_gateway.tenant.key,
    }

    seen = await _run(["node", str(HERE / "walk.mjs"), suite_gateway.url, mode], environment)

    assert seen.pop("era") == era
    late = [error.removeprefix(LATE_PROGRESS) for error in seen["errors"] if error.startswith(LATE_PROGRESS)]
    seen["progress"] += [json.loads(progress)["params"]["progress"] for progress in late]
    assert len(seen.pop("errors")) == len(late)
    _check(seen)


async def test_the_first_generation_of_the_sdk_for_python_walks_a_tenant(suite_gateway: SuiteGateway) -> None:
    """MCP: the client that most people still have works, each request at another replica (SRV-1)."""
    python = await anyio.to_thread.run_sync(find_python, "python")
    environment = _environment(suite_gateway, Path(sys.prefix))

    seen = await _run([str(python), str(HERE / "walk_v1.py"), suite_gateway.url], environment)

    assert seen.pop("era") == "2025-11-25"
    _check(seen)


CALLS: Sequence[tuple[Sequence[str], Sequence[str | int], object]] = (
    (("tools/list",), ("tools", 0, "inputSchema", "type"), "object"),
    (
        ("tools/call", "--tool-name", "test_x_mcp_header", "--tool-arg", "region=north"),
        ("content", 0, "text"),
        "The region is north.",
    ),
    (
        ("resources/read", "--uri", "test://static-text"),
        ("contents", 0, "text"),
        "This is the content of the static text resource.",
    ),
    (
        ("prompts/get", "--prompt-name", "test_prompt_with_arguments", "--prompt-args", "arg1=a", "arg2=b"),
        ("messages", 0, "content", "text"),
        "Prompt with arguments: arg1='a', arg2='b'",
    ),
)


@pytest.mark.parametrize("era", [pytest.param("legacy", marks=pytest.mark.long), "modern"])
async def test_the_inspectors_command_line_walks_a_tenant(
    suite_gateway: SuiteGateway, packages: Path, era: str
) -> None:
    """MCP: the official tool for looking at servers sees everything in both eras (SRV-1)."""
    environment = _environment(suite_gateway, packages)
    where = ["--server-url", suite_gateway.url, "--transport", "http", "--protocol-era", era, "--format", "json"]
    where += ["--header", f"Authorization: Bearer {suite_gateway.tenant.key}"]
    for (method, *arguments), place, expected in CALLS:
        found = await _run(
            ["node", str(packages / INSPECTOR), "--cli", *where, "--method", method, *arguments], environment
        )
        for step in ("result", *place):
            found = found[step]
        assert found == expected
