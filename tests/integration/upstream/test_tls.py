"""TLS to upstreams: verified by name and chain, always."""

import datetime as dt
import ipaddress
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gateway.domain.requests import UpstreamRequest
from gateway.errors import UpstreamUnreachable
from gateway.upstream.pool import Upstream
from tests.integration.upstream.loopback import OK, loopback, says


class Everywhere:
    """Every name is this machine."""

    async def resolve(self, host: str, port: int) -> list[str]:
        """Loopback."""
        return ["127.0.0.1"]

    def close(self) -> None:
        """Nothing to close."""


def self_signed(folder: Path, name: str) -> Path:
    """A certificate for one name, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    names: list[x509.GeneralName] = [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / f"{name}.pem"
    path.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path


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
    async with loopback(says(OK), tls=tls) as server:
        async with Upstream(egress_allow=[f"{host}:{server.port}"], lookup=Everywhere()) as upstream:
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
    async with loopback(says(OK), tls=tls) as server:
        async with Upstream(egress_allow=[f"api.test:{server.port}"], lookup=Everywhere()) as upstream:
            answer = await upstream.send(UpstreamRequest(method="GET", url=f"https://api.test:{server.port}/"))

        assert answer.body == b"{}"
        assert server.exchanges[0].header("host") == [f"api.test:{server.port}"]
