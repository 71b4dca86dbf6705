"""An import request: its fields, built from options, and its upload."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gateway.cli.client.admin_api import AdminApi
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.documents import DocumentArgument
from gateway.cli.input.import_options import ImportArguments
from gateway.cli.input.json_fields import JsonObject
from gateway.cli.input.selections import selection_fields
from gateway.cli.output.progress import Progress
from gateway.cli.output.tables import thousands

REPLACED = ("base_url", "prefix", "expose", "include", "exclude", "output_schemas")
"""The options that a PUT resets if they are not sent."""

_CHUNK = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """An import request: method, path, other fields of the body, document, and the ETag of the version to replace."""

    method: str
    path: str
    body: JsonObject
    document: DocumentArgument
    if_match: str | None = None


def import_fields(options: ImportArguments) -> JsonObject:
    """Build the fields of an import request from the options.

    Raises:
        Failure: a credential has the wrong form, or its file or variable cannot be read.
    """
    given = {
        "base_url": options["base_url"],
        "prefix": options["prefix"],
        "expose": options["expose"],
        "output_schemas": options["output_schemas"],
    }
    wanted: JsonObject = {name: value for name, value in given.items() if value is not None}
    wanted |= selection_fields(options)
    credentials = parse_credentials(options["credentials"], logins=options["logins"])
    return wanted | ({"credentials": credentials} if credentials else {})


def upload(admin: AdminApi, progress: Progress, request: Upload) -> JsonObject:
    """Send an import request; progress shows the stages of sending and waiting."""
    document = request.document
    content = json.dumps(request.body | document.fields()).encode()

    def chunks() -> Iterator[bytes]:
        progress.stage(f"Sending {thousands(len(content))} bytes")
        for start in range(0, len(content), _CHUNK):
            yield content[start : start + _CHUNK]
        doing = "fetches and imports" if document.url is not None else "imports"
        progress.stage(f"Waiting while the gateway {doing} {document.name}")

    return admin.upload(request.method, request.path, chunks(), length=len(content), if_match=request.if_match)


def parse_credentials(given: tuple[str, ...], *, logins: tuple[str, ...]) -> JsonObject:
    """Parse the credentials by scheme: a text, or user name and password. Files and variables are read.

    Raises:
        Failure: a credential has another form, or its file or variable cannot be read.
    """
    credentials: JsonObject = {}
    for option, texts in (("--credential", given), ("--login", logins)):
        for text in texts:
            scheme, secret = _parse_secret(option, text)
            if scheme in credentials:
                raise Failure(f"{option} {scheme}: given twice", ExitCode.USAGE)
            credentials[scheme] = secret if option == "--credential" else _split_login(scheme, secret)
    return credentials


def _parse_secret(option: str, text: str) -> tuple[str, str]:
    scheme, equals, value = text.partition("=")
    if not equals or not scheme or not value:
        raise Failure(
            f"{option} is written SCHEME=VALUE", ExitCode.USAGE
        )  # the value is not repeated, because it is secret
    return scheme, read_secret(f"{option} {scheme}", value)


def _split_login(scheme: str, secret: str) -> list[str]:
    username, colon, password = secret.partition(":")  # a user name has no colon (RFC 7617)
    if not colon or not password:
        raise Failure(f"--login {scheme}: is written SCHEME=USER:PASSWORD", ExitCode.USAGE)
    return [username, password]


def read_secret(place: str, value: str) -> str:
    """Return the secret of an option: the text itself, or the content of `@FILE` or `env:NAME`.

    Raises:
        Failure: the file cannot be read, or the variable is not set.
    """
    if value.startswith("@"):
        try:
            return Path(value[1:]).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise Failure(f"{place}: cannot read {value[1:]}: {error}", ExitCode.USAGE) from None
    if value.startswith("env:"):
        found = os.environ.get(value[4:])
        if not found:
            raise Failure(f"{place}: the variable {value[4:]} is not set", ExitCode.USAGE)
        return found
    return value
