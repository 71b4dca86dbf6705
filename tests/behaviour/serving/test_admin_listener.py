"""The admin API on a listener of its own: what answers where, in one real process, and how both end (ISO-6, SRV-3)."""

import json
import signal
import socket
from collections.abc import AsyncGenerator, Generator, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest

from gateway.app.asgi_app import GatewayApp
from gateway.app.python.registrations import Registrations
from gateway.app.server.bound_listener import bind
from gateway.errors import BrokenSetting
from gateway.settings import Settings, load_settings
from tests.support.forks import Forked
from tests.support.gateway import OPERATOR_KEY, SECRET_KEY
from tests.support.servers import TestServers
from tests.support.serving import http_client

OPERATOR = {"authorization": f"Bearer {OPERATOR_KEY}"}
METRICS_KEY = "metrics-key-of-the-tests-0123456789abc"


@dataclass(frozen=True, slots=True)
class Listeners:
    """A process with two listeners."""

    mcp: httpx.AsyncClient
    admin: httpx.AsyncClient
    child: Forked
    facts: dict[str, object]


@asynccontextmanager
async def _listeners(servers: TestServers, data: Path) -> AsyncGenerator[Listeners]:
    """One process, which prints where it listens when it answers."""
    with servers.database() as database:
        environment = {
            "GATEWAY_DATABASE_URL": database.app_url,
            "GATEWAY_REDIS_URL": servers.own_redis(),
            "GATEWAY_SECRET_KEYS": SECRET_KEY,
            "GATEWAY_OPERATOR_KEY": OPERATOR_KEY,
            "GATEWAY_METRICS_KEY": METRICS_KEY,
            "GATEWAY_ADMIN_PORT": "0",
            "GATEWAY_DATA_DIR": str(data),
        }
        with _running(environment) as child:
            printed = await anyio.to_thread.run_sync(_first_document, child)
            facts: dict[str, object] = json.loads(printed)
            async with (
                http_client(base_url=str(facts["url"]), timeout=60) as mcp,
                http_client(base_url=str(facts["admin_url"]), timeout=60) as admin,
            ):
                yield Listeners(mcp, admin, child, facts)


@pytest.fixture(scope="module")
async def infrastructure(servers: TestServers, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Listeners]:
    """The process of all tests but the one that ends it."""
    async with _listeners(servers, tmp_path_factory.mktemp("data")) as started:
        yield started


@contextmanager
def _running(environment: dict[str, str]) -> Generator[Forked]:
    child = Forked(["serve", "--port", "0", "--json"], environment)
    try:
        yield child
    finally:
        child.end()


def _first_document(child: Forked) -> str:
    """The JSON that `serve --json` prints when it answers."""
    assert child.stdout is not None
    lines: list[str] = []
    for line in child.stdout:
        lines.append(line.decode())
        try:
            json.loads("".join(lines))
        except ValueError:
            continue
        return "".join(lines)
    raise AssertionError("the gateway ended")


async def test_the_admin_api_answers_on_its_own_listener_alone(infrastructure: Listeners) -> None:
    """Ours: on the MCP port an admin path is any unknown path, with or without a credential (ISO-6)."""
    assert infrastructure.facts["url"] != infrastructure.facts["admin_url"]
    assert (await infrastructure.admin.get("/admin/v1/tenants", headers=OPERATOR)).status_code == 200
    unknown = await infrastructure.mcp.get("/no/such/path")
    assert unknown.status_code == 404
    for path in ("/admin/v1/tenants", "/admin/v1/openapi.json", "/admin/v1/doctor", "/admin/v1/", "/admin"):
        for headers in (OPERATOR, {}):
            answer = await infrastructure.mcp.get(path, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
            assert _without_id(answer) == _without_id(unknown)


async def test_mcp_answers_on_its_listener_alone(infrastructure: Listeners) -> None:
    """Ours: neither MCP nor webhooks are served where the admin API is (ISO-6)."""
    made = await infrastructure.admin.post("/admin/v1/tenants", headers=OPERATOR, json={"slug": "acme"})
    assert (made.status_code, made.json()["status"]["mcp_url"]) == (201, f"{infrastructure.facts['url']}/t/acme/mcp")
    body = {"name": "k", "scopes": ["mcp"]}
    key = (await infrastructure.admin.post("/admin/v1/tenants/acme/keys", headers=OPERATOR, json=body)).json()["key"]
    headers = {"authorization": f"Bearer {key}", "accept": "application/json, text/event-stream"}
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

    assert (await infrastructure.mcp.post("/t/acme/mcp", headers=headers, json=ping)).status_code not in {401, 403, 404}
    for path in ("/t/acme/mcp", "/t/acme/sse", "/t/acme/hooks/x"):
        answer = await infrastructure.admin.post(path, headers=headers, json=ping)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_probes_answer_on_both_and_numbers_with_the_admin_api(infrastructure: Listeners) -> None:
    """Ours: a balancer probes where it sends requests; numbers name tenants and stay inside (ISO-6)."""
    for client in (infrastructure.mcp, infrastructure.admin):
        assert (await client.get((await client.get("/none")).json()["type"])).status_code == 200
        for path in ("/healthz", "/readyz"):
            assert (await client.get(path)).status_code == 200
    headers = {"authorization": f"Bearer {METRICS_KEY}"}
    assert (await infrastructure.admin.get("/metrics", headers=headers)).status_code == 200
    assert (await infrastructure.mcp.get("/metrics", headers=headers)).status_code == 404


async def test_both_listeners_end_with_one_signal(servers: TestServers, tmp_path: Path) -> None:
    """Ours: SIGTERM drains both, and the process exits with 0 (SRV-3)."""
    async with _listeners(servers, tmp_path) as ended:
        ended.child.send_signal(signal.SIGTERM)
        with anyio.fail_after(60):
            assert await anyio.to_thread.run_sync(ended.child.wait) == 0
        for url in (ended.facts["url"], ended.facts["admin_url"]):
            async with http_client() as http:
                with pytest.raises(httpx.TransportError):
                    await http.get(f"{url}/healthz")


def _without_id(answer: httpx.Response) -> dict[str, object]:
    """The problem without what names the request."""
    shown: dict[str, object] = answer.json()
    return {name: value for name, value in shown.items() if name != "correlation_id"}


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the machine reaches these tests."""
    for name in Settings.model_fields:
        monkeypatch.delenv(f"GATEWAY_{name.upper()}", raising=False)


@pytest.mark.usefixtures("settings")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])  # what must be refused
def test_a_public_admin_address_needs_keys_of_its_own(host: str) -> None:
    """Ours: the rules of the MCP address hold for the admin API's too (ISO-6, TEN-5)."""
    with pytest.raises(BrokenSetting, match="GATEWAY_SECRET_KEYS and GATEWAY_OPERATOR_KEY"):
        load_settings(admin_host=host, admin_port=8081).check_exposure()

    load_settings(
        admin_host=host, admin_port=8081, operator_key=OPERATOR_KEY, secret_keys=(SECRET_KEY,)
    ).check_exposure()
    load_settings(admin_port=8081).check_exposure()


@pytest.mark.usefixtures("settings")
def test_half_a_configuration_of_the_listener_is_refused() -> None:
    """Ours: an address without a port would leave the admin API where MCP is (ISO-6)."""
    with pytest.raises(BrokenSetting, match="set GATEWAY_ADMIN_PORT"):
        load_settings(admin_host="127.0.0.1").check_exposure()
    with pytest.raises(BrokenSetting, match="is the port of MCP"):
        load_settings(admin_port=8080).check_exposure()


@pytest.mark.usefixtures("settings")
def test_a_taken_admin_port_is_named() -> None:
    """Ours: one line names the setting and the address (ISO-6)."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        with pytest.raises(BrokenSetting, match=f"GATEWAY_ADMIN_PORT: cannot listen on 127.0.0.1:{port}"):
            bind(load_settings(port=0, admin_port=port))


@pytest.mark.usefixtures("settings")
async def test_an_application_in_another_server_has_one_listener() -> None:
    """Ours: listeners that cannot be separated are refused, not merged (ISO-6)."""
    hosted = GatewayApp(load_settings(admin_port=8081), Registrations())
    sent: list[str] = []

    async def receive() -> dict[str, str]:
        return {"type": "lifespan.startup"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message["type"])

    with pytest.raises(BrokenSetting, match="GATEWAY_ADMIN_PORT"):
        await hosted({"type": "lifespan"}, receive, send)
    assert sent == ["lifespan.startup.failed"]
