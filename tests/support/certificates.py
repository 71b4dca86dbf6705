"""Certificates that nobody but a test believes."""

import datetime as dt
import ipaddress
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@cache
def unused_authority() -> Path:
    """A certificate that no server shows, one per process."""
    return self_signed(Path(tempfile.mkdtemp(prefix="gwa-")), "authority.test")


@contextmanager
def few_authorities() -> Generator[None]:
    """Let a gateway that starts in this block trust one authority: reading those of the machine takes 30 to 50 ms."""
    if "SSL_CERT_FILE" in os.environ:
        yield
        return
    os.environ["SSL_CERT_FILE"] = str(unused_authority())
    try:
        yield
    finally:
        del os.environ["SSL_CERT_FILE"]


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
