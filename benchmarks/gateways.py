"""A gateway under measurement: started with its own servers or given ones, prepared over its admin API."""

import json
import shutil
import tempfile
import time
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
from benchmarks.tokens import KEYS_PATH, access_token
from gateway.embedded.servers import EmbeddedServers, EmbeddedUrls
from gateway.store.database.migrations import migrate

_OPERATOR = "benchmark-operator-key-of-32-characters"
PUBLIC_URL = "http://gateway.example"
"""The URL that access tokens have as audience."""
_SECRET = "benchmark-secret-key-of-32-characters"
_PLENTY = {
    "calls_per_second": 1e6,
    "burst": 1_000_000,
    "concurrency": 100_000,
    "sessions": 1_000_000,
    "streams": 1_000_000,
}
_ADMIN_S = 180
_ATTACH_S = 30
_NO_LIMITS = {"GATEWAY_ADMIN_RATE": "1000000"}
"""Removes the admin rate limit, so that tenants and sources are prepared as fast as possible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningGateway:
    """A running gateway in its own process."""

    port: int
    pid: int

    @property
    def url(self) -> str:
        """The gateway's URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def operator(self) -> Mapping[str, str]:
        """The headers of the operator's requests."""
        return {"authorization": f"Bearer {_OPERATOR}", "content-type": "application/json"}

    def send(self, method: str, path: str, body: bytes | None = None) -> Any:
        """Send a request as the operator; return the decoded response.

        Raises:
            Failed: the request was refused or got no response.
        """
        request = urllib.request.Request(
            f"{self.url}/admin/v1{path}", method=method, data=body, headers=dict(self.operator)
        )
        try:
            with urllib.request.urlopen(request, timeout=_ADMIN_S) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            raise Failed(f"{method} {path}: {error.code} {error.read()[:500]!r}") from None
        except OSError as error:
            raise Failed(f"{method} {path}: {error}") from None

    def tenant(self, slug: str) -> str:
        """Create a tenant with limits too high to matter; return its key."""
        self.send("POST", "/tenants", json.dumps({"slug": slug}).encode())
        self.send("PUT", f"/tenants/{slug}/policy", json.dumps({"limits": _PLENTY}).encode())
        wanted = json.dumps({"name": "bench", "scopes": ["mcp"]}).encode()
        key: str = self.send("POST", f"/tenants/{slug}/keys", wanted)["key"]
        return key

    def add_source(self, slug: str, document: bytes, *, url: str | None = None) -> Any:
        """Import a document (JSON, or any other format as text) and return the report; `url` is the URL of its API."""
        shown = document if document.lstrip()[:1] == b"{" else json.dumps(document.decode()).encode()
        body = b'{"name":"bench",%s"document":%s}' % (b"" if url is None else b'"base_url":"%s",' % url.encode(), shown)
        return self.send("POST", f"/tenants/{slug}/sources", body)["report"]

    def accept_token(self, slug: str, issuer: str) -> str:
        """Let a tenant accept an issuer; return an access token of it."""
        wanted = {"name": "bench", "url": issuer, "jwks_url": issuer + KEYS_PATH, "rules": [{}]}
        self.send("POST", f"/tenants/{slug}/issuers", json.dumps(wanted).encode())
        return access_token(issuer, f"{PUBLIC_URL}/t/{slug}/mcp")

    def attach(self, slug: str, url: str, tool: str) -> None:
        """Declare an MCP server as a live source with one safe tool, and wait until it is attached.

        Raises:
            Failed: it was not attached in time.
        """
        settings = {"name": "remote", "kind": "mcp", "settings": {"url": url}, "safety": {tool: "safe"}}
        self.send("POST", f"/tenants/{slug}/live-sources", json.dumps(settings | {"accepts_changes": True}).encode())
        ends = time.monotonic() + _ATTACH_S
        while tool not in {each["name"] for each in self.send("GET", f"/tenants/{slug}/tools")["items"]}:
            if time.monotonic() > ends:
                raise Failed(f"{url} was not attached: {self.send('GET', f'/tenants/{slug}/live-sources/remote')}")
            time.sleep(0.2)

    def open_session(self, slug: str, key: str) -> str:
        """Open a session of the handshake era; return its id."""
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
    workers: int = 1,
) -> Generator[RunningGateway]:
    """Run a gateway while the block runs; without `servers` it starts its own below the folder."""
    port = free_port()
    environment = {"GATEWAY_OPERATOR_KEY": _OPERATOR, "GATEWAY_SECRET_KEYS": _SECRET, "GATEWAY_LOG_LEVEL": "warning"}
    environment["GATEWAY_PUBLIC_URL"] = PUBLIC_URL
    environment["GATEWAY_TENANT_POLICY"] = "moderate=allow,dangerous=allow"
    environment |= limits
    if upstream_port is not None:
        environment["GATEWAY_EGRESS_ALLOW"] = f"127.0.0.1:{upstream_port}"
    if servers is not None:
        environment |= {"GATEWAY_DATABASE_URL": servers.database_url, "GATEWAY_REDIS_URL": servers.redis_url}
    arguments = ["-m", "gateway", "serve", "--port", str(port), "--data-dir", str(data_dir), "--workers", str(workers)]
    with running(arguments, f"http://127.0.0.1:{port}/readyz", environment) as child:
        yield RunningGateway(port=port, pid=child.pid)


@contextmanager
def running_servers() -> Generator[EmbeddedUrls]:
    """Run a migrated PostgreSQL and a Redis, independent of any gateway."""
    with (
        scratch() as folder,
        start_blocking_portal("asyncio") as portal,
        portal.wrap_async_context_manager(EmbeddedServers(folder)) as urls,
    ):
        portal.call(migrate, urls.migration_database_url)
        yield urls


@contextmanager
def running_upstream() -> Generator[tuple[int, int]]:
    """Run the upstream; yield its port and process id."""
    port = free_port()
    with running(["-m", "benchmarks.targets", "upstream", str(port)], f"http://127.0.0.1:{port}/") as child:
        yield port, child.pid


@contextmanager
def scratch() -> Generator[Path]:
    """Create a temporary folder with a short path."""
    folder = Path(tempfile.mkdtemp(prefix="gwb-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
