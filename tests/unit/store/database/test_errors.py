"""What goes wrong until a connection stands is told apart: the URL, the login, the certificate, the way there."""

import ssl

import asyncpg
import pytest

from gateway.errors import BrokenSetting, DatabaseUnavailable, GatewayError
from gateway.store.database.errors import translate_connect_error


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED]"), DatabaseUnavailable, "not trusted"),
        (asyncpg.ClientConfigurationError("of another kind"), BrokenSetting, "URL is invalid"),
        (ConnectionRefusedError(), DatabaseUnavailable, "cannot be reached"),
    ],
)
def test_each_says_what_to_look_at(error: Exception, kind: type[GatewayError], said: str) -> None:
    """Ours: a certificate that is not believed is no URL that cannot be read, though Python calls both ValueErrors."""
    translated = translate_connect_error(error)

    assert isinstance(translated, kind)
    assert said in translated.message
