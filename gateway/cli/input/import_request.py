"""An import request: its fields, built from options, and its upload."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from gateway.cli.client.admin_api import AdminApi
from gateway.cli.client.rate_limit import send_within
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.documents import DocumentArgument
from gateway.cli.input.import_options import ImportArguments, declared_fields
from gateway.cli.input.json_fields import JsonObject
from gateway.cli.input.limits import MAX_WAIT_S
from gateway.cli.input.secrets import parse_credentials
from gateway.cli.input.selections import selection_fields
from gateway.cli.output.progress import Progress
from gateway.cli.output.tables import thousands

_CHUNK = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """An import request: method, path, other fields of the body, document, and the ETag of the version to replace.

    With `is_waiting`, a request that comes too early is sent again when the gateway permits it.
    """

    method: str
    path: str
    body: JsonObject
    document: DocumentArgument
    if_match: str | None = None
    is_waiting: bool = False


def import_fields(options: ImportArguments) -> JsonObject:
    """Build the fields of an import request from the options.

    Raises:
        Failure: a credential has the wrong form, or its file or variable cannot be read.
    """
    wanted = declared_fields(options)
    if parameters := options.get("parameters"):
        wanted["parameters"] = [_parse_parameter(text) for text in parameters]
    wanted |= selection_fields(options)
    credentials = parse_credentials(options["credentials"], logins=options["logins"])
    return wanted | ({"credentials": credentials} if credentials else {})


def _parse_parameter(text: str) -> JsonObject:
    place, equals, credential = text.partition("=")
    location, colon, name = place.partition(":")
    if not (equals and colon and location and name and credential):
        raise Failure("--parameter must have the form LOCATION:NAME=CREDENTIAL", ExitCode.USAGE)
    return {"location": location, "name": name, "credential": credential}


def upload(admin: AdminApi, progress: Progress, request: Upload) -> JsonObject:
    """Send an import request; progress shows the stages of sending and waiting."""
    seconds = MAX_WAIT_S if request.is_waiting else 0
    return send_within(seconds, lambda: _send(admin, progress, request), progress.stage)


def _send(admin: AdminApi, progress: Progress, request: Upload) -> JsonObject:
    document = request.document
    content = json.dumps(request.body | document.fields()).encode()

    def chunks() -> Iterator[bytes]:
        progress.stage(f"Sending {thousands(len(content))} bytes")
        for start in range(0, len(content), _CHUNK):
            yield content[start : start + _CHUNK]
        doing = "fetches and imports" if document.url is not None else "imports"
        progress.stage(f"Waiting while the gateway {doing} {document.name}")

    return admin.upload(request.method, request.path, chunks(), length=len(content), if_match=request.if_match)
