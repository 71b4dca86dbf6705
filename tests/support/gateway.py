"""A whole gateway for tests: the real application on a real uvicorn over a real socket, with real servers behind it."""

import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

import anyio
import httpx
import httpx2
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from gateway.app.backends import Backends
from gateway.app.build import build_app
from gateway.app.readiness import Readiness
from gateway.app.secrets import GatewayKeys
from gateway.app.server.http_protocol import HardenedHttpProtocol
from gateway.settings import Settings
from tests.support.certificates import few_authorities
from tests.support.servers import TestServers
from tests.support.serving import NO_TLS, Server, clients_of
from tests.support.upstream import RecordingUpstream, recording_upstream

OPERATOR_KEY = "operator-key-of-the-tests-0123456789"
SECRET_KEY = "secret-key-of-the-tests-0123456789abc"
OPEN_POLICY = ("moderate=allow", "dangerous=allow")
"""Decisions of tenants that tests create: calls of every level run, but where a test is about the policy."""
ACCEPT = "application/json, text/event-stream"
MODERN = "2026-07-28"
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
"""Members of every request of 2026-07-28."""


@dataclass(frozen=True, slots=True)
class RunningGateway:
    """A gateway that answers at `url`."""

    url: str
    admin: httpx.AsyncClient
    http: httpx.AsyncClient
    readiness: Readiness

    async def create_tenant(self, slug: str) -> None:
        """A tenant of this slug."""
        (await self.admin.post("/tenants", json={"slug": slug})).raise_for_status()

    async def create_key(self, slug: str, *scopes: str, **more: object) -> str:
        """A new key of the tenant; scope mcp unless others are named."""
        body = {"name": "test", "scopes": list(scopes) or ["mcp"], **more}
        answer = await self.admin.post(f"/tenants/{slug}/keys", json=body)
        answer.raise_for_status()
        key: str = answer.json()["key"]
        return key

    async def lift_rate(self, slug: str) -> None:
        """Let the tenant's keys call without a rate: a test that calls hundreds of times needs no slow machine."""
        limits = {"limits": {"calls_per_second": 10_000, "burst": 10_000}}
        (await self.admin.patch(f"/tenants/{slug}/policy", json=limits)).raise_for_status()

    async def import_document(
        self, slug: str, document: object, *, name: str = "api", **more: object
    ) -> dict[str, Any]:
        """The report of a document imported as a source."""
        body = {"name": name, "document": document, **more}
        answer = await self.admin.post(f"/tenants/{slug}/sources", json=body)
        assert answer.status_code == 201, answer.text
        report: dict[str, Any] = answer.json()["report"]
        return report

    @asynccontextmanager
    async def client(
        self, slug: str, key: str, mode: Literal["auto", "legacy", "2026-07-28"] = "auto", **more: Any
    ) -> AsyncGenerator[Client]:
        """The SDK's own client at the tenant's URL."""
        headers = {"authorization": f"Bearer {key}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30, verify=NO_TLS, trust_env=False) as http,
            Client(streamable_http_client(f"{self.url}/t/{slug}/mcp", http_client=http), mode=mode, **more) as client,
        ):
            yield client

    async def rpc(
        self, slug: str, key: str, method: str, params: dict[str, Any] | None = None, **headers: str
    ) -> httpx.Response:
        """One request of 2026-07-28, as bytes on the wire."""
        named = {"mcp-name": params["name"]} if params and "name" in params else {}
        sent = {
            "authorization": f"Bearer {key}",
            "accept": ACCEPT,
            "mcp-protocol-version": MODERN,
            "mcp-method": method,
            **named,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        given = params or {}
        sent_params = {**given, "_meta": {**META, **given.get("_meta", {})}}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": sent_params}
        return await self.http.post(f"/t/{slug}/mcp", json=body, headers=sent)


@asynccontextmanager
async def running_gateway(
    database_url: str, redis_url: str, *, egress_allow: Sequence[str] = (), **overrides: Any
) -> AsyncGenerator[RunningGateway]:
    """One gateway on a free loopback port for as long as the block runs."""
    settings = Settings.model_validate(
        {
            "database_url": database_url,
            "redis_url": redis_url,
            "secret_keys": (SECRET_KEY,),
            "operator_key": OPERATOR_KEY,
            "egress_allow": tuple(egress_allow),
            "tenant_policy": OPEN_POLICY,
            "admin_rate": 1_000_000,
            "auth_failure_rate": 1_000_000,
            "list_page_items": 100,  # so that tests of several pages need not make thousands of tools
            **overrides,
        }
    )
    listener = socket.create_server(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    addresses = Backends(database_url=database_url, redis_url=redis_url, is_embedded=False)
    secret_keys = tuple(key.get_secret_value() for key in settings.secret_keys)
    keys = GatewayKeys(secret_keys=secret_keys, operator_key=OPERATOR_KEY, operator_key_is_new=False)
    readiness = Readiness()
    app = build_app(settings, addresses=addresses, keys=keys, readiness=readiness)
    server = Server(
        uvicorn.Config(
            app.asgi,
            http=HardenedHttpProtocol,
            lifespan="off",
            access_log=False,
            log_config=None,
            proxy_headers=False,
            timeout_keep_alive=75,  # as in production: a server that closes first loses requests of busy clients
        )
    )
    url = f"http://127.0.0.1:{port}"
    async with AsyncExitStack() as stack:
        stack.callback(listener.close)  # the server closes it, if it starts
        with few_authorities():
            await stack.enter_async_context(app.lifespan())
        group = await stack.enter_async_context(anyio.create_task_group())
        group.start_soon(server.serve, [listener])
        try:
            with anyio.fail_after(30):
                await server.answering.wait()
            async with clients_of(url, OPERATOR_KEY) as (admin, http):
                yield RunningGateway(url, admin, http, readiness)
        finally:
            server.leave()


@asynccontextmanager
async def gateway_beside_upstream(servers: TestServers) -> AsyncGenerator[tuple[RunningGateway, RecordingUpstream]]:
    """A gateway with a database and a Redis of its own, and an upstream that it may call and that records it."""
    with servers.database() as database:
        async with (
            recording_upstream() as upstream,
            running_gateway(database.app_url, servers.own_redis(), egress_allow=[upstream.authority]) as gateway,
        ):
            yield gateway, upstream
