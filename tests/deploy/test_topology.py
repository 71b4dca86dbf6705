"""Two replicas behind Caddy with TLS, as docker-compose.yml has them, spoken to as clients and strangers do."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx
import pytest

from tests.deploy.compose import ROOT, read_compose
from tests.deploy.dockerfile import image_variables
from tests.deploy.programs import find_program
from tests.deploy.topology import DEBIANS_CADDY, Mode, Topology, clean_environment, running_topology
from tests.support.documents import many, pets
from tests.support.replicas import tool_names, until
from tests.support.servers import TestServers
from tests.support.serving import http_client
from tests.support.upstream import RecordingUpstream, recording_upstream

PATIENCE_S = 20


@pytest.fixture(scope="module")
async def upstream() -> AsyncGenerator[RecordingUpstream]:
    """An upstream that writes down what it is asked."""
    async with recording_upstream() as started:
        yield started


@pytest.fixture(scope="module")
async def topology(
    servers: TestServers, upstream: RecordingUpstream, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Topology]:
    """Caddy and two replicas with the tenant `acme` and its pets."""
    folder = tmp_path_factory.mktemp("topology")
    with servers.database() as database:
        async with running_topology(
            database.app_url, servers.empty_redis(), folder, egress_allow=[upstream.authority]
        ) as started:
            await started.gateway.create_tenant("acme")
            await started.gateway.import_document("acme", pets(upstream.url))
            yield started


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy", "auto"])
async def test_a_client_lists_and_calls_over_https(topology: Topology, mode: Mode) -> None:
    """Ours: both eras work through a TLS proxy that knows no session (SRV-1, SRV-6)."""
    key = await topology.gateway.create_key("acme")

    async with topology.client("acme", key, mode) as client:
        assert "get_pet" in await tool_names(client)
        for _ in range(6):
            assert not (await client.call_tool("get_pet", {"id": 7})).is_error


async def test_a_listener_receives_events_through_the_proxy_at_once(topology: Topology) -> None:
    """Ours: nothing on the way keeps back an event until more of them come (CAP-2, SRV-6)."""
    key = await topology.gateway.create_key("acme")

    async with (
        topology.client("acme", key, "2026-07-28") as client,
        client.listen(tools_list_changed=True) as stream,
    ):
        await topology.gateway.import_document("acme", many("https://api.example.com", 1), name="more")
        with anyio.fail_after(PATIENCE_S):
            async for event in stream:
                assert type(event).__name__ == "ToolsListChanged"
                break


async def test_only_tls_is_served_and_plain_http_is_sent_there(topology: Topology) -> None:
    """Ours: a client that begins without TLS is redirected, before it sends any secret twice (SRV-6)."""
    port = topology.url.rpartition(":")[2]

    async with http_client() as http:
        answer = await http.get(f"http://localhost:{port}/readyz")

    assert answer.status_code in {301, 308, 400}


async def test_caddys_own_authority_signs_its_certificate(topology: Topology) -> None:
    """Ours: without its root certificate no client trusts the connection (SRV-6)."""
    async with httpx.AsyncClient(trust_env=False) as http:
        with pytest.raises(httpx.ConnectError, match="certificate"):
            await http.get(f"{topology.url}/readyz")


def _refusals(topology: Topology, path: str) -> list[dict[str, Any]]:
    """Log lines of any replica about refused credentials at this path."""
    lines = [line for replica in topology.replicas for line in replica.log.read_text().splitlines()]
    reported = [json.loads(line) for line in lines if "credential_refused" in line]
    return [line for line in reported if line["path"] == path]


async def _client_seen(topology: Topology, url: str, address: str, headers: dict[str, str] | None = None) -> str:
    path = urlsplit(url).path
    transport = httpx.AsyncHTTPTransport(verify=topology.trust, local_address=address)
    async with httpx.AsyncClient(transport=transport, trust_env=False) as http:
        answer = await http.post(url, headers=headers)
    assert answer.status_code == 401, answer.text

    async def is_logged() -> bool:
        return bool(_refusals(topology, path))

    await until(is_logged, seconds=PATIENCE_S)
    client: str = _refusals(topology, path)[0]["client"]
    return client


@pytest.mark.skipif(sys.platform != "linux", reason="other loopback addresses than one are Linux's")
async def test_the_clients_address_comes_through_the_proxy(topology: Topology) -> None:
    """Ours: the logged address of a client is the client's, not the proxy's (SRV-6)."""
    assert await _client_seen(topology, f"{topology.url}/t/one/mcp", "127.0.0.2") == "127.0.0.2"


@pytest.mark.skipif(sys.platform != "linux", reason="other loopback addresses than one are Linux's")
async def test_a_client_cannot_choose_its_address(topology: Topology) -> None:
    """Ours: X-Forwarded-For from an untrusted address has no effect, at Caddy and at a replica (SRV-6)."""
    forged = {"x-forwarded-for": "203.0.113.9", "forwarded": "for=203.0.113.9"}
    direct = topology.replicas[0].url

    assert await _client_seen(topology, f"{topology.url}/t/two/mcp", "127.0.0.3", forged) == "127.0.0.3"
    assert await _client_seen(topology, f"{direct}/t/three/mcp", "127.0.0.4", forged) == "127.0.0.4"
    assert await _client_seen(topology, f"{direct}/t/four/mcp", "127.0.0.1", forged) == "203.0.113.9"


async def test_the_admin_api_is_reached_inside_only(topology: Topology) -> None:
    """Ours: neither Caddy nor a replica's MCP port knows an admin path, with any credential (ISO-6, SRV-6)."""
    bearer = {"authorization": f"Bearer {(topology.secrets / 'operator_key').read_text()}"}

    for path in ("/admin/v1/tenants", "/admin/v1/openapi.json", "/admin/docs", "/admin"):
        assert (await topology.gateway.http.get(path, headers=bearer)).status_code == 404
        async with http_client() as http:
            assert (await http.get(f"{topology.replicas[0].url}{path}", headers=bearer)).status_code == 404
    assert (await topology.gateway.admin.get("/tenants")).status_code == 200


async def test_numbers_are_read_inside_only(topology: Topology) -> None:
    """Ours: from outside there are no metrics; inside they want the key for them (SRV-6)."""
    key = (topology.secrets / "metrics_key").read_text()
    bearer = {"authorization": f"Bearer {key}"}

    assert (await topology.gateway.http.get("/metrics", headers=bearer)).status_code == 404
    async with http_client() as http:
        inside = await http.get(f"{topology.replicas[0].admin_url}/metrics", headers=bearer)
        assert (await http.get(f"{topology.replicas[0].admin_url}/metrics")).status_code == 401
    assert inside.status_code == 200


async def test_the_welcome_ends_with_a_key_that_works(topology: Topology) -> None:
    """Ours: the second of two commands prints an MCP URL and a key for it (SRV-6)."""
    environment = {
        **clean_environment(),
        **image_variables(),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GATEWAY_URL": topology.replicas[0].admin_url,
        "GATEWAY_OPERATOR_KEY_FILE": str(topology.secrets / "operator_key"),
        "PUBLIC_URL": topology.url,
    }
    ended = await anyio.run_process([str(ROOT / "deploy/compose/welcome"), "demo"], env=environment, check=False)
    assert ended.returncode == 0, ended.stderr
    reported = dict(line.split(None, 1) for line in ended.stdout.decode().replace("MCP URL", "URL").splitlines()[:2])

    assert reported["URL"] == f"{topology.url}/t/demo/mcp"
    async with topology.client("demo", reported["Header"].rpartition(" ")[2], "auto") as client:
        assert await tool_names(client) == []


async def test_caddys_health_check_queries_a_path_that_it_serves(topology: Topology) -> None:
    """Ours: a wait for Caddy's health ends, and not before Caddy is healthy (SRV-6)."""
    url: str = read_compose()["services"]["caddy"]["healthcheck"]["test"][-1]
    check = urlsplit(url)

    assert (check.hostname, check.port) == ("127.0.0.1", 2019)
    async with http_client(base_url=topology.caddys_own) as http:
        assert (await http.get(check.path)).status_code == 200


async def test_no_protocol_without_a_port_is_advertised(topology: Topology) -> None:
    """Ours: HTTP/2 is spoken; HTTP/3, for which Compose opens nothing, is not offered (SRV-6)."""
    answer = await topology.gateway.http.get("/healthz")

    assert "alt-svc" not in answer.headers


def test_caddy_accepts_its_file_as_it_is(tmp_path: Path) -> None:
    """Ours: with no variable set, and with a host name of the world (SRV-6)."""
    program = find_program("caddy", "caddy")
    for variables in ({}, {"GATEWAY_DOMAIN": "mcp.example.com"}):
        adapted = subprocess.run(
            [program, "adapt", "--adapter", "caddyfile", "--config", ROOT / "deploy/caddy/Caddyfile"],
            env={**clean_environment(), "HOME": str(tmp_path), **DEBIANS_CADDY, **variables},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert adapted.returncode == 0, adapted.stderr
        assert '"dial":"gateway-a:8080"' in adapted.stdout
        assert '"dial":"gateway-b:8080"' in adapted.stdout
        assert variables.get("GATEWAY_DOMAIN", "localhost") in adapted.stdout
        assert "not formatted" not in adapted.stderr
