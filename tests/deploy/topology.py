"""The services of docker-compose.yml, as processes: two replicas and Caddy with TLS in front of them."""

import os
import signal
import ssl
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.to_thread
import httpx
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from gateway.app.readiness import Readiness
from tests.deploy.compose import ROOT, read_compose
from tests.deploy.programs import find_program
from tests.deploy.sockets import free_port
from tests.support.forks import Forked
from tests.support.gateway import OPEN_POLICY, RunningGateway
from tests.support.replicas import until
from tests.support.serving import http_client

Mode = Literal["auto", "legacy", "2026-07-28"]

_STARTING_S = 180.0
_STOPPING_S = 40.0


class Process:
    """One program with its log, started as often as it is wanted."""

    def __init__(self, name: str, command: Sequence[str], environment: dict[str, str], folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._command = list(command)
        self._environment = environment
        self._folder = folder
        self._child: subprocess.Popen[bytes] | Forked | None = None

    def start(self) -> None:
        """Start it."""
        self._child = self._launch()

    def _launch(self) -> subprocess.Popen[bytes] | Forked:
        with self.log.open("ab") as log:
            return subprocess.Popen(self._command, env=self._environment, cwd=self._folder, stdout=log, stderr=log)

    async def stop(self) -> int:
        """Stop it as an engine does, and return its exit code."""
        assert self._child is not None
        self._child.send_signal(signal.SIGTERM)
        with anyio.fail_after(_STOPPING_S):
            return await anyio.to_thread.run_sync(self._child.wait, abandon_on_cancel=True)

    def end(self) -> None:
        """End it whatever it does, and show the end of its log, which is printed when the test has failed."""
        if self._child is not None and self._child.poll() is None:
            self._child.kill()
            self._child.wait()
        if self.log.exists():
            print(f"--- {self.name}", *self.log.read_text(errors="replace").splitlines()[-25:], sep="\n")


class Replica(Process):
    """One gateway at ports that it keeps, one of them the admin API's."""

    def __init__(self, name: str, environment: dict[str, str], folder: Path) -> None:
        self.port, admin_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.admin_url = f"http://127.0.0.1:{admin_port}"
        environment = {**environment, "GATEWAY_ADMIN_HOST": "127.0.0.1", "GATEWAY_ADMIN_PORT": str(admin_port)}
        super().__init__(name, ["serve", "--port", str(self.port)], environment, folder)

    def _launch(self) -> Forked:
        return Forked(self._command, self._environment, folder=self._folder, output=self.log, errors=self.log)

    async def ready(self) -> None:
        """Wait until it can serve."""
        async with http_client() as http:
            await until(lambda: self._has_ended() or _answers(http, f"{self.url}/readyz"), seconds=_STARTING_S)
        assert not self._has_ended(), self.log.read_text()[-2000:]

    def _has_ended(self) -> bool:
        return self._child is not None and self._child.poll() is not None


@dataclass(frozen=True, slots=True)
class Topology:
    """The running whole."""

    url: str
    gateway: RunningGateway
    replicas: tuple[Replica, ...]
    trust: ssl.SSLContext
    secrets: Path
    caddys_own: str
    """URL of Caddy itself."""

    @asynccontextmanager
    async def client(self, slug: str, key: str, mode: Mode, **more: Any) -> AsyncGenerator[Client]:
        """The SDK's own client, over HTTPS through Caddy."""
        headers = {"authorization": f"Bearer {key}"}
        async with (
            httpx2.AsyncClient(headers=headers, verify=self.trust, timeout=60, trust_env=False) as http,
            Client(streamable_http_client(f"{self.url}/t/{slug}/mcp", http_client=http), mode=mode, **more) as client,
        ):
            yield client


@asynccontextmanager
async def running_topology(
    database_url: str, redis_url: str, folder: Path, *, egress_allow: Sequence[str] = (), notice_s: float = 2
) -> AsyncGenerator[Topology]:
    """Everything, for as long as the block runs; skipped where Caddy cannot be had."""
    program = find_program("caddy", "caddy")
    secrets = make_secrets(folder / "secrets", database_url=database_url, redis_url=redis_url)
    port, admin_port = free_port(), free_port()
    url = f"https://localhost:{port}"
    own = {"GATEWAY_PUBLIC_URL": url, "GATEWAY_EGRESS_ALLOW": ",".join(egress_allow), "GATEWAY_NOTICE_S": str(notice_s)}
    own |= {"GATEWAY_TENANT_POLICY": ",".join(OPEN_POLICY)}
    replicas = tuple(
        Replica(name, {**replica_environment(name, secrets), **own}, folder) for name in ("gateway-a", "gateway-b")
    )
    caddy = Process(
        "caddy",
        [str(program), *_caddy_arguments(folder)],
        _caddy_environment(folder, port, admin_port, replicas),
        folder,
    )
    async with AsyncExitStack() as stack:
        for process in (*replicas, caddy):
            stack.callback(process.end)
            process.start()
        for replica in replicas:
            await replica.ready()
        trust = await _trust(folder)
        key = (secrets / "operator_key").read_text()
        bearer = {"authorization": f"Bearer {key}"}
        inside = f"{replicas[0].admin_url}/admin/v1"
        admin = http_client(base_url=inside, headers=bearer, timeout=60)
        http = httpx.AsyncClient(base_url=url, verify=trust, timeout=30, trust_env=False)
        await stack.enter_async_context(admin)
        await stack.enter_async_context(http)
        await until(lambda: _answers(http, "/readyz"), seconds=_STARTING_S)
        yield Topology(
            url,
            RunningGateway(url, admin, http, Readiness()),
            replicas,
            trust,
            secrets,
            f"http://127.0.0.1:{admin_port}",
        )


def make_secrets(folder: Path, *, database_url: str, redis_url: str) -> Path:
    """Output of `deploy/compose/prepare`, with the servers of the tests in it."""
    folder.mkdir(parents=True)
    (folder / "database_url").write_text(database_url)
    (folder / "redis_url").write_text(redis_url)
    subprocess.run([ROOT / "deploy/compose/prepare", folder], check=True, capture_output=True)
    return folder


def replica_environment(name: str, secrets: Path) -> dict[str, str]:
    """Environment of a replica in Compose, its files in our folder, on loopback, where Caddy also is."""
    reported: dict[str, str] = read_compose()["services"][name]["environment"]
    notified = {variable: value.replace("/run/secrets", str(secrets)) for variable, value in reported.items()}
    notified |= {"GATEWAY_HOST": "127.0.0.1", "GATEWAY_TRUSTED_PROXIES": "127.0.0.1/32", "GATEWAY_LOG_FORMAT": "json"}
    return {**clean_environment(), **notified}


def clean_environment() -> dict[str, str]:
    """This machine's variables without those that mean us."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("GATEWAY_", "CADDY_"))}


DEBIANS_CADDY = {"CADDY_REQUEST_BUFFERS": "buffer_requests"}
"""Variables for Caddy 2.6, whose directive has another name."""


def caddyfile(folder: Path) -> Path:
    """Ours, and reachable from this machine only."""
    text = (ROOT / "deploy/caddy/Caddyfile").read_text()
    assert text.count("\tskip_install_trust\n") == 1
    path = folder / "Caddyfile"
    path.write_text(text.replace("\tskip_install_trust\n", "\tskip_install_trust\n\tdefault_bind 127.0.0.1\n"))
    return path


def _caddy_arguments(folder: Path) -> list[str]:
    return ["run", "--adapter", "caddyfile", "--config", str(caddyfile(folder))]


def _caddy_environment(folder: Path, port: int, admin: int, replicas: Sequence[Replica]) -> dict[str, str]:
    return {
        **clean_environment(),
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder / "caddy-data"),
        "XDG_CONFIG_HOME": str(folder / "caddy-config"),
        "CADDY_ADMIN": f"localhost:{admin}",
        **DEBIANS_CADDY,
        "CADDY_HTTP_PORT": str(free_port()),
        "CADDY_HTTPS_PORT": str(port),
        "GATEWAY_UPSTREAMS": " ".join(f"127.0.0.1:{replica.port}" for replica in replicas),
    }


async def _trust(folder: Path) -> ssl.SSLContext:
    """Caddy's own authority, and no other."""
    root = folder / "caddy-data/caddy/pki/authorities/local/root.crt"

    async def is_there() -> bool:
        return root.is_file() and root.stat().st_size > 0

    await until(is_there, seconds=_STARTING_S)
    return ssl.create_default_context(cafile=str(root))


async def _answers(http: httpx.AsyncClient, url: str) -> bool:
    try:
        return (await http.get(url)).status_code == 200
    except httpx.TransportError:
        return False
