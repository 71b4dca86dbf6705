"""Faults until a connection is open are distinguished: the URL, the login, the certificate, the network."""

import ssl

import asyncpg
import pytest

from gateway.errors import BrokenSetting, DatabaseUnavailable, GatewayError
from gateway.store.database.errors import translate_connect_error


@pytest.mark.parametrize(
    ("error", "kind", "reported", "to_the_operator"),
    [
        (
            ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED]"),
            DatabaseUnavailable,
            "PostgreSQL cannot be reached.",
            "not trusted",
        ),
        (
            asyncpg.InvalidPasswordError('password authentication failed for user "gateway"'),
            DatabaseUnavailable,
            "PostgreSQL refused the connection.",
            'password authentication failed for user "gateway"',
        ),
        (asyncpg.ClientConfigurationError("of another kind"), BrokenSetting, "URL is invalid", None),
        (ConnectionRefusedError(), DatabaseUnavailable, "cannot be reached", "cannot be reached"),
    ],
)
def test_each_error_names_its_remedy(
    error: Exception, kind: type[GatewayError], reported: str, to_the_operator: str | None
) -> None:
    """Ours: a certificate that is not believed is no URL that cannot be read, though Python calls both ValueErrors."""
    translated = translate_connect_error(error)

    assert isinstance(translated, kind)
    assert reported in translated.message
    assert (to_the_operator or "") in (getattr(translated, "cause", "") or "")
