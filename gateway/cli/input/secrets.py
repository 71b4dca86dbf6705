"""Secrets in options: given directly, or read from a file or a variable."""

import os
from pathlib import Path

from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject

_STORED_PREFIX = "credential:"


def parse_credentials(given: tuple[str, ...], *, logins: tuple[str, ...]) -> JsonObject:
    """Parse credentials by security scheme: a string, user name and password, or the name of a stored credential.

    Files and variables are read.

    Raises:
        Failure: a credential is malformed, or its file or variable cannot be read.
    """
    credentials: JsonObject = {}
    for option, texts in (("--credential", given), ("--login", logins)):
        for text in texts:
            scheme, value = _parse_secret(option, text)
            if scheme in credentials:
                raise Failure(f"{option} {scheme}: given twice", ExitCode.USAGE)
            # Checked before a file or variable is read, so that no content of it is taken for a name and printed.
            if option == "--credential" and value.startswith(_STORED_PREFIX):
                credentials[scheme] = {"credential": value.removeprefix(_STORED_PREFIX)}
                continue
            secret = read_secret(f"{option} {scheme}", value)
            credentials[scheme] = secret if option == "--credential" else _split_login(scheme, secret)
    return credentials


def _parse_secret(option: str, text: str) -> tuple[str, str]:
    scheme, equals, value = text.partition("=")
    if not equals or not scheme or not value:
        raise Failure(
            f"{option} must have the form SCHEME=VALUE", ExitCode.USAGE
        )  # the value is not repeated, because it is secret
    return scheme, value


def _split_login(scheme: str, secret: str) -> list[str]:
    username, colon, password = secret.partition(":")  # a user name has no colon (RFC 7617)
    if not colon or not password:
        raise Failure(f"--login {scheme}: must have the form SCHEME=USER:PASSWORD", ExitCode.USAGE)
    return [username, password]


def read_secret(label: str, value: str) -> str:
    """Return the secret of an option: the text itself, or the content of `@FILE` or `env:NAME`.

    Raises:
        Failure: the file cannot be read, or the variable is not set or is empty.
    """
    if value.startswith("@"):
        try:
            return Path(value[1:]).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise Failure(f"{label}: cannot read {value[1:]}: {error}", ExitCode.USAGE) from None
    if value.startswith("env:"):
        found = os.environ.get(value[4:])
        if not found:
            raise Failure(f"{label}: the variable {value[4:]} is not set or is empty", ExitCode.USAGE)
        return found
    return value
