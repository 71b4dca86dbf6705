"""TLS to upstreams: verified by name and chain, always."""

import ssl
from pathlib import Path

import pytest

from gateway.domain.http.requests import UpstreamRequest
from gateway.errors import UpstreamUnreachable
from gateway.upstream.client import UpstreamClient
from tests.integration.upstream.loopback import OK, loopback, states
from tests.support.certificates import self_signed


class Everywhere:
    """Every name is this machine."""

    async def resolve(self, host: str, port: int) -> list[str]:
        """Loopback."""
        return ["127.0.0.1"]

    def close(self) -> None:
        """Nothing to close."""


@pytest.mark.parametrize(("trusted", "host"), [(False, "api.test"), (True, "other.test")])
async def test_an_untrusted_certificate_or_one_of_another_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted: bool, host: str
) -> None:
    """Ours: there is no way to switch verification off, and nothing is sent before it."""
    path = self_signed(tmp_path, "api.test")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(path)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
    async with loopback(states(OK), tls=tls) as server:
        async with UpstreamClient(egress_allow=[f"{host}:{server.port}"], lookup=Everywhere()) as upstream:
            with pytest.raises(UpstreamUnreachable, match="TLS"):
                await upstream.send(UpstreamRequest(method="GET", url=f"https://{host}:{server.port}/"))

        assert server.exchanges == []


async def test_a_trusted_certificate_of_the_right_name_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: the name in the URL is what counts, though an address is dialled; the system's trust store is used."""
    path = self_signed(tmp_path, "api.test")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(path)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    async with loopback(states(OK), tls=tls) as server:
        async with UpstreamClient(egress_allow=[f"api.test:{server.port}"], lookup=Everywhere()) as upstream:
            answer = await upstream.send(UpstreamRequest(method="GET", url=f"https://api.test:{server.port}/"))

        assert answer.body == b"{}"
        assert server.exchanges[0].header("host") == [f"api.test:{server.port}"]
