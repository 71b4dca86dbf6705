"""Environment of the conformance suites: two replicas, a balancer in front of them, and a tenant with the fixtures."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from tests.conformance.balancer import Balancer, running_balancer
from tests.conformance.fixtures import Tenant, provision
from tests.deploy.programs import find_program
from tests.deploy.proxies import Proxy, running_proxy
from tests.deploy.sockets import free_port
from tests.deploy.topology import DEBIANS_CADDY, Process, caddyfile, clean_environment
from tests.support.replicas import Replicas, running_replicas, until
from tests.support.serving import http_client

SLUG = "exam"
EXTRAS = "tests.conformance.extras:TOOLS"
_STARTING_S = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteGateway:
    """Everything that runs; clients find it at `origin`."""

    origin: str
    tenant: Tenant
    balancer: Balancer
    replicas: Replicas
    place: str = ""
    """Address of a proxy between the clients and the tenant, if there is one."""

    @property
    def url(self) -> str:
        """The tenant's."""
        return self.place or f"{self.origin}/t/{self.tenant.slug}/mcp"


@asynccontextmanager
async def open_hall(
    database_url: str, redis_url: str, folder: Path, *, origins: Sequence[str] = ()
) -> AsyncGenerator[SuiteGateway]:
    """Two replicas behind a balancer of ours, which may be known by further origins."""
    async with (
        running_balancer() as balancer,
        running_replicas(
            database_url,
            redis_url,
            folder,
            egress_allow=[urlsplit(balancer.url).netloc],
            allowed_origins=",".join((balancer.url, *origins)),
            extra_tools=EXTRAS,
        ) as replicas,
    ):
        balancer.targets = [replica.gateway.url for replica in replicas.all]
        tenant = await provision(replicas.a.gateway.admin, SLUG, origin=balancer.url)
        yield SuiteGateway(origin=balancer.url, tenant=tenant, balancer=balancer, replicas=replicas)


@asynccontextmanager
async def open_hall_behind_caddy(database_url: str, redis_url: str, folder: Path) -> AsyncGenerator[SuiteGateway]:
    """The same behind Caddy as docker-compose.yml has it, but without TLS, which parts of the suites cannot speak."""
    program = find_program("caddy", "caddy")
    port = free_port()
    origin = f"http://127.0.0.1:{port}"
    async with open_hall(database_url, redis_url, folder, origins=[origin]) as suite_gateway:
        environment = clean_environment() | {
            "HOME": str(folder),
            "XDG_DATA_HOME": str(folder / "caddy-data"),
            "XDG_CONFIG_HOME": str(folder / "caddy-config"),
            "CADDY_ADMIN": "off",
            **DEBIANS_CADDY,
            "GATEWAY_DOMAIN": f"http://:{port}",
            "GATEWAY_UPSTREAMS": " ".join(urlsplit(target).netloc for target in suite_gateway.balancer.targets),
        }
        command = [str(program), "run", "--adapter", "caddyfile", "--config", str(caddyfile(folder))]
        caddy = Process("caddy", command, environment, folder)
        caddy.start()
        try:
            await until(lambda: _is_up(origin), seconds=_STARTING_S)
            yield replace(suite_gateway, origin=origin)
        finally:
            caddy.end()


@asynccontextmanager
async def open_hall_behind(
    proxy: Proxy, database_url: str, redis_url: str, folder: Path
) -> AsyncGenerator[SuiteGateway]:
    """The same behind a proxy with its configuration of `deploy/`, but without TLS."""
    port = free_port()
    async with open_hall(database_url, redis_url, folder, origins=[f"http://127.0.0.1:{port}"]) as suite_gateway:
        targets = [urlsplit(target).netloc for target in suite_gateway.balancer.targets]
        async with running_proxy(proxy, folder, targets, plain_port=port) as front:
            yield replace(suite_gateway, origin=front.url)


async def _is_up(origin: str) -> bool:
    async with http_client() as http:
        try:
            return (await http.get(f"{origin}/readyz")).status_code == 200
        except httpx.TransportError:
            return False
