"""nginx and HAProxy as `deploy/` configures them, with TLS in front of two replicas: what clients and strangers see."""

import json
import re
import ssl
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx
import httpx2
import pytest
import yaml
from anyio.streams.tls import TLSStream
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from websockets.asyncio.client import connect

from gateway.admin.endpoint import LARGE_BODY
from gateway.protocol.limits import MAX_BYTES
from tests.deploy.compose import ROOT
from tests.deploy.proxies import PROXIES, Front, Proxy, check, running_proxy
from tests.support.documents import many, pets
from tests.support.replicas import Mode, Replicas, running_replicas, tool_names, until
from tests.support.servers import TestServers
from tests.support.serving import http_client
from tests.support.upstream import RecordingUpstream, recording_upstream

PATIENCE_S = 20
LONG_S = 3.0
"""Longer than the 2 s after which a response becomes a stream of events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A proxy, the replicas behind it and the tenant `acme`."""

    proxy: Proxy
    folder: Path
    front: Front
    replicas: Replicas
    upstream: RecordingUpstream
    key: str

    @property
    def targets(self) -> list[str]:
        """Host and port of each replica."""
        return [urlsplit(replica.gateway.url).netloc for replica in self.replicas.all]

    @asynccontextmanager
    async def client(self, mode: Mode) -> AsyncGenerator[Client]:
        """The SDK's own client, over HTTPS through the proxy."""
        headers = {"authorization": f"Bearer {self.key}"}
        url = f"{self.front.url}/t/acme/mcp"
        async with (
            httpx2.AsyncClient(headers=headers, verify=self.front.trust, timeout=60, trust_env=False) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            yield client


@pytest.fixture(scope="module", params=PROXIES, ids=lambda proxy: proxy.name)
async def site(
    request: pytest.FixtureRequest, servers: TestServers, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Site]:
    """The sample with TLS in front of two replicas that trust it."""
    folder = tmp_path_factory.mktemp("proxy")
    proxy: Proxy = request.param
    with servers.database() as database:
        async with (
            recording_upstream() as upstream,
            running_replicas(
                database.app_url,
                servers.empty_redis(),
                folder,
                egress_allow=[upstream.authority],
                trusted_proxies="127.0.0.1/32",
                allowed_hosts="localhost",
            ) as replicas,
        ):
            targets = [urlsplit(replica.gateway.url).netloc for replica in replicas.all]
            gateway = replicas.a.gateway
            await gateway.create_tenant("acme")
            await gateway.import_document("acme", pets(upstream.url))
            key = await gateway.create_key("acme", "mcp", "provide")
            async with running_proxy(proxy, folder, targets) as front:
                yield Site(proxy=proxy, folder=folder, front=front, replicas=replicas, upstream=upstream, key=key)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_a_client_lists_and_calls_over_https(site: Site, mode: Mode) -> None:
    """Ours: both eras work through a TLS proxy that knows no session (SRV-1, SRV-6)."""
    async with site.client(mode) as client:
        assert "get_pet" in await tool_names(client)
        for _ in range(6):
            assert not (await client.call_tool("get_pet", {"id": 7})).is_error


@pytest.mark.long
async def test_an_event_passes_at_once(site: Site) -> None:
    """Ours: the proxy holds back no event of an open stream (CAP-2, SRV-6)."""
    async with site.client("2026-07-28") as client, client.listen(tools_list_changed=True) as stream:
        await site.replicas.b.gateway.import_document("acme", many("https://api.example.com", 1), name="more")
        with anyio.fail_after(PATIENCE_S):
            async for event in stream:
                assert type(event).__name__ == "ToolsListChanged"
                break


@pytest.mark.long
@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_a_long_call_ends_with_its_result(site: Site, mode: Mode) -> None:
    """Ours: a call that outlasts the change to a stream of events passes as one, in parts and without a gap (SRV-6)."""
    site.upstream.gate = gate = anyio.Event()  # type: ignore[assignment]  # has what an event of asyncio has
    try:
        async with site.client(mode) as client, anyio.create_task_group() as group:

            async def let_go() -> None:
                await anyio.sleep(LONG_S)
                gate.set()

            group.start_soon(let_go)
            with anyio.fail_after(PATIENCE_S):
                assert not (await client.call_tool("get_pet", {"id": 7})).is_error
    finally:
        site.upstream.reset()


@pytest.mark.long
async def test_a_large_message_is_judged_by_the_gateway(site: Site) -> None:
    """Ours: the largest message passes the proxy, and a larger one is refused by the gateway itself (CAL-5)."""
    headers = {"authorization": f"Bearer {site.key}", "accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(verify=site.front.trust, timeout=30, trust_env=False) as http:
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": {"filling": ""}}}
        spare = MAX_BYTES - len(json.dumps(message))
        message["params"]["_meta"]["filling"] = "x" * (spare - 1024)
        taken = await http.post(
            f"{site.front.url}/t/acme/mcp",
            content=json.dumps(message),
            headers={**headers, "content-type": "application/json"},
        )
        message["params"]["_meta"]["filling"] = "x" * (spare + 1024)
        refused = await http.post(
            f"{site.front.url}/t/acme/mcp",
            content=json.dumps(message),
            headers={**headers, "content-type": "application/json"},
        )

    assert str(MAX_BYTES) not in taken.text
    assert str(MAX_BYTES) in refused.text
    assert refused.headers["content-type"].startswith("application/")


def test_the_largest_document_is_below_the_limit_of_nginx() -> None:
    """Ours: a proxy in front of the admin listener refuses no document that the gateway accepts."""
    text = (ROOT / "deploy/nginx/gateway.conf").read_text()
    found = re.search(r"client_max_body_size (\d+)m;", text)

    assert found is not None
    assert int(found[1]) * 2**20 > LARGE_BODY


@pytest.mark.long
async def test_a_provider_connects_through_the_proxy(site: Site) -> None:
    """Ours: the WebSocket of a provider is passed on, and stays open (DYN-6, SRV-6)."""
    url = f"{site.front.url.replace('https', 'wss')}/t/acme/provide"
    async with connect(
        url, ssl=site.front.trust, additional_headers={"authorization": f"Bearer {site.key}"}, proxy=None
    ) as socket:
        assert await (await socket.ping()) >= 0


def _refusals(site: Site, path: str) -> list[dict[str, Any]]:
    found = [line for replica in site.replicas.all for line in replica.lines("credential_refused")]
    return [line for line in found if line["path"] == path]


async def _logged_client(site: Site, path: str) -> str:
    async def is_logged() -> bool:
        return bool(_refusals(site, path))

    await until(is_logged, seconds=PATIENCE_S)
    client: str = _refusals(site, path)[0]["client"]
    return client


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="other loopback addresses than one are Linux's")
@pytest.mark.parametrize("forged", [False, True])
async def test_the_gateway_sees_the_address_of_the_client(site: Site, *, forged: bool) -> None:
    """Ours: the client's address passes, and no header of the client replaces it (SRV-6)."""
    path = f"/t/address-{int(forged)}/mcp"
    headers = {"x-forwarded-for": "203.0.113.9", "forwarded": "for=203.0.113.9"} if forged else {}
    transport = httpx.AsyncHTTPTransport(verify=site.front.trust, local_address="127.0.0.2")
    async with httpx.AsyncClient(transport=transport, trust_env=False) as http:
        assert (await http.post(site.front.url + path, headers=headers)).status_code == 401

    assert await _logged_client(site, path) == "127.0.0.2"


@pytest.mark.long
async def test_the_address_comes_by_the_proxy_protocol(site: Site, tmp_path: Path) -> None:
    """Ours: behind a TCP load balancer, the address of the PROXY protocol is that of the client (SRV-6)."""
    async with running_proxy(site.proxy, tmp_path, site.targets, has_proxy_protocol=True) as front:
        port = urlsplit(front.url).port or 0
        async with await anyio.connect_tcp("127.0.0.1", port) as balancer:
            await balancer.send(b"PROXY TCP4 203.0.113.7 127.0.0.1 50000 443\r\n")
            front.trust.set_alpn_protocols(["http/1.1"])
            secured = await TLSStream.wrap(
                balancer, hostname="localhost", ssl_context=front.trust, standard_compatible=False
            )
            await secured.send(
                b"POST /t/protocol/mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
            assert b" 401 " in (await secured.receive()).partition(b"\r\n")[0]

    assert await _logged_client(site, "/t/protocol/mcp") == "203.0.113.7"


@pytest.mark.long
async def test_only_the_paths_of_clients_are_passed_on(site: Site) -> None:
    """Ours: the proxy passes neither the admin API nor the metrics, although this replica has them (ISO-6)."""
    async with httpx.AsyncClient(verify=site.front.trust, trust_env=False) as http:
        answers = {
            path: (await http.get(site.front.url + path)).status_code
            for path in ("/admin", "/admin/v1/tenants", "/admin/docs", "/metrics", "/docs/errors", "/readyz")
        }

    assert answers == {
        "/admin": 404,
        "/admin/v1/tenants": 404,
        "/admin/docs": 404,
        "/metrics": 404,
        "/docs/errors": 200,
        "/readyz": 200,
    }


@pytest.mark.long
async def test_plain_http_is_sent_to_tls(site: Site) -> None:
    """Ours: a client that begins without TLS is redirected with its method (SRV-6)."""
    async with http_client() as http:
        answer = await http.post(f"{site.front.plain_url}/t/acme/mcp", headers={"host": "localhost"})
    async with httpx.AsyncClient(verify=ssl.create_default_context(), trust_env=False) as http:
        with pytest.raises(httpx.ConnectError, match="certificate"):
            await http.get(f"{site.front.url}/readyz")

    assert (answer.status_code, answer.headers["location"]) == (308, "https://localhost/t/acme/mcp")


@pytest.mark.parametrize("proxy", PROXIES, ids=lambda proxy: proxy.name)
def test_the_program_accepts_its_file(proxy: Proxy, tmp_path: Path) -> None:
    """Ours: nginx and HAProxy accept their sample without a warning (SRV-6)."""
    done = check(proxy, tmp_path)

    assert done.returncode == 0, done.stderr
    assert "warn" not in (done.stdout + done.stderr).lower()


def test_the_sample_of_traefik_is_like_the_others() -> None:
    """Ours: no program of Traefik is here, so its files are read: YAML, the same replicas, paths and idle times."""
    static = yaml.safe_load((ROOT / "deploy/traefik/traefik.yaml").read_text())
    routes = yaml.safe_load((ROOT / "deploy/traefik/dynamic.yaml").read_text())
    balancer = routes["http"]["services"]["replicas"]["loadBalancer"]
    transport = routes["http"]["serversTransports"][balancer["serversTransport"]]
    rule = routes["http"]["routers"]["gateway"]["rule"]

    assert [one["url"] for one in balancer["servers"]] == ["http://gateway-a:8080", "http://gateway-b:8080"]
    assert balancer["responseForwarding"]["flushInterval"].startswith("-")
    assert int(transport["forwardingTimeouts"]["idleConnTimeout"].removesuffix("s")) < 75
    assert "!PathPrefix(`/admin`)" in rule
    assert "!Path(`/metrics`)" in rule
    assert set(routes["http"]["routers"]["gateway"]["entryPoints"]) <= set(static["entryPoints"])
