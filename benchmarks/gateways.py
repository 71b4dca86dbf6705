"""A gateway under measurement: started with servers of its own or with given ones, spoken to over its admin API."""

import json
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal

from benchmarks.processes import Failed, free_port, running
from benchmarks.requests import ACCEPT, INITIALIZE
from gateway.embedded.servers import EmbeddedServers, EmbeddedUrls
from gateway.store.database.migrations import migrate

_OPERATOR = "benchmark-operator-key-of-32-characters"
_SECRET = "benchmark-secret-key-of-32-characters"
_PLENTY = {
    "calls_per_second": 1e6,
    "burst": 1_000_000,
    "concurrency": 100_000,
    "sessions": 1_000_000,
    "streams": 1_000_000,
}
_ADMIN_S = 180
_NO_LIMITS = {"GATEWAY_ADMIN_RATE": "1000000"}
"""Tenants and their sources are prepared as fast as the gateway can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningGateway:
    """A gateway that answers, as one process among others."""

    port: int
    pid: int

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def send(self, method: str, path: str, body: bytes | None = None) -> Any:
        """One request of the operator; the decoded answer.

        Raises:
            Failed: it was refused.
        """
        headers = {"authorization": f"Bearer {_OPERATOR}", "content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}/admin/v1{path}", method=method, data=body, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=_ADMIN_S) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            raise Failed(f"{method} {path}: {error.code} {error.read()[:500]!r}") from None
        except OSError as error:
            raise Failed(f"{method} {path}: {error}") from None

    def tenant(self, slug: str) -> str:
        """A tenant without limits that matter; its key."""
        self.send("POST", "/tenants", json.dumps({"slug": slug}).encode())
        self.send("PUT", f"/tenants/{slug}/policy", json.dumps({"limits": _PLENTY}).encode())
        wanted = json.dumps({"name": "bench", "scopes": ["mcp"]}).encode()
        key: str = self.send("POST", f"/tenants/{slug}/keys", wanted)["key"]
        return key

    def add_source(self, slug: str, document: bytes, *, url: str | None = None) -> Any:
        """Import a JSON document, or any other as text, whose operations are at the URL if one is given; the report."""
        shown = document if document.lstrip()[:1] == b"{" else json.dumps(document.decode()).encode()
        body = b'{"name":"bench",%s"document":%s}' % (b"" if url is None else b'"base_url":"%s",' % url.encode(), shown)
        return self.send("POST", f"/tenants/{slug}/sources", body)["report"]

    def open_session(self, slug: str, key: str) -> str:
        """The id of a new session of the handshake era."""
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json", "accept": ACCEPT}
        request = urllib.request.Request(f"{self.url}/t/{slug}/mcp", data=json.dumps(message).encode(), headers=headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            session: str = answer.headers["mcp-session-id"]
        return session


@contextmanager
def running_gateway(
    data_dir: Path,
    *,
    upstream_port: int | None = None,
    servers: EmbeddedUrls | None = None,
    limits: Mapping[str, str] = _NO_LIMITS,
) -> Generator[RunningGateway]:
    """A gateway for as long as the block runs; without servers it starts its own below the folder."""
    port = free_port()
    environment = {"GATEWAY_OPERATOR_KEY": _OPERATOR, "GATEWAY_SECRET_KEYS": _SECRET, "GATEWAY_LOG_LEVEL": "warning"}
    environment |= limits
    if upstream_port is not None:
        environment["GATEWAY_EGRESS_ALLOW"] = f"127.0.0.1:{upstream_port}"
    if servers is not None:
        environment |= {"GATEWAY_DATABASE_URL": servers.database_url, "GATEWAY_REDIS_URL": servers.redis_url}
    arguments = ["-m", "gateway", "serve", "--port", str(port), "--data-dir", str(data_dir)]
    with running(arguments, f"http://127.0.0.1:{port}/readyz", environment) as child:
        yield RunningGateway(port=port, pid=child.pid)


@contextmanager
def running_servers() -> Generator[EmbeddedUrls]:
    """PostgreSQL, migrated, and Redis, in no gateway's care."""
    with (
        scratch() as folder,
        start_blocking_portal("asyncio") as portal,
        portal.wrap_async_context_manager(EmbeddedServers(folder)) as urls,
    ):
        portal.call(migrate, urls.migration_database_url)
        yield urls


@contextmanager
def running_upstream() -> Generator[tuple[int, int]]:
    """The upstream's port and process id."""
    port = free_port()
    with running(["-m", "benchmarks.targets", "upstream", str(port)], f"http://127.0.0.1:{port}/") as child:
        yield port, child.pid


@contextmanager
def scratch() -> Generator[Path]:
    """A short temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="gwb-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
