"""Certificates that only tests trust."""

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

_VARIABLE = "SSL_CERT_FILE"
_OF_THE_MACHINE = os.environ.get(_VARIABLE)


@cache
def unused_authority() -> Path:
    """A certificate that no server shows, one per process."""
    return self_signed(Path(tempfile.mkdtemp(prefix="gwa-")), "authority.test")


def authorities() -> str:
    """The file that a test has named, else one of a single authority: those of the machine take 25 to 50 ms."""
    named = os.environ.get(_VARIABLE)
    return str(unused_authority()) if named in {None, _OF_THE_MACHINE} else str(named)


@contextmanager
def few_authorities() -> Generator[None]:
    """Let a gateway that starts in this block trust those."""
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = authorities()
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before


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
