"""nginx and HAProxy with the configurations of `deploy/`, on loopback in front of replicas of a test.

The test changes addresses, ports and the certificate only, each by an edit that must apply.
"""

import os
import ssl
import subprocess
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.deploy.compose import ROOT
from tests.deploy.programs import find_program, library_path
from tests.deploy.sockets import free_port
from tests.deploy.topology import Process, clean_environment
from tests.support.certificates import self_signed
from tests.support.replicas import until
from tests.support.serving import http_client

_STARTING_S = 60.0
_NGINX = """\
daemon off;
{user}pid {folder}/nginx.pid;
error_log stderr;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/proxied;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/gateway.conf;
}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The port of a proxy and its upstreams; without a certificate it has no TLS."""

    folder: Path
    port: int
    plain_port: int
    targets: Sequence[str]
    certificate: Path | None
    has_proxy_protocol: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """A program of Debian, and how its command and files follow from the sample."""

    name: str
    sample: str
    write: Callable[[Place, str], Path]
    arguments: Callable[[Path], list[str]]

    def program(self) -> Path:
        """The program.

        Raises:
            ProgramMissing: apt cannot fetch it.
        """
        return find_program(self.name, self.name, with_libraries=True)

    def command(self, place: Place) -> list[str]:
        """The command that runs the sample at a place."""
        text = (ROOT / self.sample).read_text()
        return [str(self.program()), *self.arguments(self.write(place, text))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """A running proxy: its URL, the one without TLS that redirects, and the certificates to trust."""

    url: str
    plain_url: str
    trust: ssl.SSLContext


@asynccontextmanager
async def running_proxy(
    proxy: Proxy,
    folder: Path,
    targets: Sequence[str],
    *,
    plain_port: int | None = None,
    has_proxy_protocol: bool = False,
) -> AsyncGenerator[Front]:
    """The proxy in front of `targets`, hosts with ports; with `plain_port` it serves without TLS there."""
    has_tls = plain_port is None
    certificate = self_signed(folder, "localhost") if has_tls else None
    place = Place(
        folder=folder,
        port=plain_port or free_port(),
        plain_port=free_port(),
        targets=targets,
        certificate=certificate,
        has_proxy_protocol=has_proxy_protocol,
    )
    command = proxy.command(place)
    process = Process(proxy.name, command, clean_environment() | library_path(Path(command[0])), folder)
    trust = ssl.create_default_context(cafile=None if certificate is None else str(certificate))
    plain = f"http://127.0.0.1:{place.plain_port}"
    url = f"https://localhost:{place.port}" if has_tls else f"http://127.0.0.1:{place.port}"
    process.start()
    try:
        await until(lambda: _answers(plain if has_proxy_protocol else f"{url}/readyz", trust), seconds=_STARTING_S)
        yield Front(url=url, plain_url=plain, trust=trust)
    finally:
        process.end()


def edited(text: str, *edits: tuple[str, str]) -> str:
    """The text with each edit, which must apply."""
    for before, after in edits:
        assert before in text, before
        text = text.replace(before, after)
    return text


def check(proxy: Proxy, folder: Path) -> subprocess.CompletedProcess[str]:
    """The program's check of the configuration, at ports and with a certificate of the test."""
    place = Place(
        folder=folder,
        port=free_port(),
        plain_port=free_port(),
        targets=("127.0.0.1:1", "127.0.0.1:2"),
        certificate=self_signed(folder, "localhost"),
        has_proxy_protocol=False,
    )
    command = proxy.command(place)
    environment = clean_environment() | library_path(Path(command[0]))
    flag = {"nginx": "-t", "haproxy": "-c"}[proxy.name]
    return subprocess.run([*command, flag], env=environment, capture_output=True, text=True, check=False)


def _write_nginx(place: Place, text: str) -> Path:
    proxied = (
        (
            ("    listen 443 ssl http2;\n", ""),
            ("#proxy# listen", "listen"),
            ("#proxy# ", ""),
            ("10.0.0.0/8", "127.0.0.1"),
        )
        if place.has_proxy_protocol
        else ()
    )
    own = [
        ("gateway-a:8080", place.targets[0]),
        ("gateway-b:8080", place.targets[1]),
        ("listen 80;", f"listen 127.0.0.1:{place.plain_port};"),
        ("server_name mcp.example.com;", "server_name localhost;"),
        ("listen 443 ssl http2", f"listen 127.0.0.1:{place.port} ssl http2"),
    ]
    if place.certificate is None:
        own += [(f"listen 127.0.0.1:{place.port} ssl http2", f"listen 127.0.0.1:{place.port}")]
        own += [(line, "#") for line in ("ssl_certificate  ", "ssl_certificate_key ", "ssl_protocols ")]
        own += [("proxy_set_header Host $host;", "proxy_set_header Host $http_host;")]  # a port of its own
    else:
        own += [("/etc/nginx/tls/tls.crt", str(place.certificate)), ("/etc/nginx/tls/tls.key", str(place.certificate))]
    (place.folder / "gateway.conf").write_text(edited(text, *proxied, *own))
    user = "user root;\n" if os.geteuid() == 0 else ""
    path = place.folder / "nginx.conf"
    path.write_text(_NGINX.format(folder=place.folder, user=user))
    return path


def _write_haproxy(place: Place, text: str) -> Path:
    secured = f"ssl crt {place.certificate} alpn h2,http/1.1" + (" accept-proxy" if place.has_proxy_protocol else "")
    path = place.folder / "haproxy.cfg"
    path.write_text(
        edited(
            text,
            ("gateway-a:8080", place.targets[0]),
            ("gateway-b:8080", place.targets[1]),
            ("bind :80\n", f"bind 127.0.0.1:{place.plain_port}\n"),
            (
                "bind :443 ssl crt /etc/haproxy/tls.pem alpn h2,http/1.1",
                f"bind 127.0.0.1:{place.port} {secured if place.certificate else ''}",
            ),
            ("hdr Host mcp.example.com", "hdr Host localhost"),
        )
    )
    return path


NGINX = Proxy(
    name="nginx",
    sample="deploy/nginx/gateway.conf",
    write=_write_nginx,
    arguments=lambda path: ["-c", str(path), "-p", str(path.parent)],
)
HAPROXY = Proxy(
    name="haproxy",
    sample="deploy/haproxy/haproxy.cfg",
    write=_write_haproxy,
    arguments=lambda path: ["-db", "-f", str(path)],
)
PROXIES = (NGINX, HAPROXY)


async def _answers(url: str, trust: ssl.SSLContext) -> bool:
    try:
        async with http_client() as plain, httpx.AsyncClient(verify=trust, trust_env=False) as secured:
            return (await (secured if url.startswith("https:") else plain).get(url)).status_code in {200, 308}
    except httpx.TransportError:
        return False
