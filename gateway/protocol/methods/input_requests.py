"""Server-to-client requests (elicitation, sampling, roots): methods, required capabilities, validation of responses.

The content of an accepted form is validated against the requested schema before the handler receives it.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, get_args

from mcp_types import (
    ClientCapabilities,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitResult,
    ListRootsResult,
)
from pydantic import TypeAdapter, ValidationError

from gateway.definitions.contract.elicitation_schemas import compile_ask_schema
from gateway.definitions.json_schema.validator import Validator, find_faults
from gateway.domain.json_access import as_list, as_object
from gateway.domain.live_sources import PAGE_TYPE, PAGES_EXTENSION
from gateway.errors import CapabilityMissing, ClientSilent, HandlerFailed
from gateway.handlers.interfaces import InputRequest, InputRequestKind, LogLevel

METHODS: Final[Mapping[InputRequestKind, str]] = {
    "elicitation": "elicitation/create",
    "sampling": "sampling/createMessage",
    "roots": "roots/list",
}
FIRST_WITH_MODES: Final = "2025-11-25"
"""The first revision with pages, and so with modes of elicitation."""

LEVELS: Final[tuple[LogLevel, ...]] = get_args(LogLevel)
"""Log levels from the least severe to the most severe (RFC 5424)."""

_RESPONSE_TYPES: Final[Mapping[InputRequestKind, TypeAdapter[Any]]] = {
    "elicitation": TypeAdapter(ElicitResult),
    "sampling": TypeAdapter(CreateMessageResult | CreateMessageResultWithTools),
    "roots": TypeAdapter(ListRootsResult),
}


def to_wire_request(input_request: InputRequest) -> dict[str, Any]:
    """The JSON-RPC method and parameters of a request to the client."""
    request: dict[str, Any] = {"method": METHODS[input_request.kind]}
    if input_request.params:
        request["params"] = dict(input_request.params)
    return request


def to_session_request(input_request: InputRequest, revision: str) -> dict[str, Any]:
    """Return the request as clients of the revisions with a handshake expect it.

    A page has an id, which 2025-11-25 requires; before that revision, forms have no mode.
    """
    request = to_wire_request(input_request)
    params: dict[str, Any] = request.get("params", {})
    if input_request.kind != "elicitation":
        return request
    if params.get("mode") == "url":
        params.setdefault("elicitationId", secrets.token_urlsafe(16))
    elif revision < FIRST_WITH_MODES:
        params.pop("mode", None)
    return request


def require_capability(input_request: InputRequest, has_capability: Callable[[str], bool]) -> None:
    """Check that a request can be sent to the client and its response validated.

    Raises:
        CapabilityMissing: the client did not declare the required capability.
        HandlerFailed: the schema of the form is invalid.
    """
    is_url_mode = input_request.kind == "elicitation" and input_request.params.get("mode") == "url"
    _compile_form_validator(input_request)
    capability: str = "elicitation.url" if is_url_mode else input_request.kind
    if not has_capability(capability):
        if capability == "elicitation" and has_capability("elicitation.url"):
            capability = "elicitation.form"
        raise CapabilityMissing(f"the client did not declare {capability}", capability=capability)


def supports(capabilities: ClientCapabilities | None, kind: str) -> bool:
    """True if the client declared the capability.

    An `elicitation` capability without modes means form mode, as in revisions before modes existed.
    """
    if capabilities is None:
        return False
    elicitation = capabilities.elicitation
    match kind:
        case "elicitation":
            return elicitation is not None and (elicitation.form is not None or elicitation.url is None)
        case "elicitation.url":
            return elicitation is not None and elicitation.url is not None
        case "sampling":
            return capabilities.sampling is not None
        case "roots":
            return capabilities.roots is not None
        case "ui":
            return shows_pages(capabilities.extensions)
        case _:
            return False


def shows_pages(extensions: Mapping[str, Any] | None) -> bool:
    """True if the client declared that it shows pages in HTML (MCP Apps)."""
    declared = as_object((extensions or {}).get(PAGES_EXTENSION))
    kinds = None if declared is None else as_list(declared.get("mimeTypes"))
    return kinds is not None and PAGE_TYPE in kinds


def is_valid_response(kind: InputRequestKind, response: object) -> bool:
    """True if the object is a valid response to this kind of request."""
    try:
        _RESPONSE_TYPES[kind].validate_python(response, by_name=False)
    except ValidationError:
        return False
    return True


def check_response(input_request: InputRequest, response: Mapping[str, Any]) -> None:
    """Validate the content of an accepted form against its schema; other responses are not checked.

    Raises:
        ClientSilent: the content does not match the schema; `faults` points to the invalid values.
        HandlerFailed: the schema of the form is invalid.
    """
    validator = _compile_form_validator(input_request)
    if validator is None or response.get("action") != "accept":
        return
    faults = find_faults(validator, response.get("content") or {})
    if faults:
        raise ClientSilent("the client's response does not match the schema of its form", faults=faults)


def _compile_form_validator(input_request: InputRequest) -> Validator | None:
    if input_request.kind != "elicitation" or "requestedSchema" not in input_request.params:
        return None
    try:
        return compile_ask_schema(input_request.params["requestedSchema"])
    except ValueError as error:
        raise HandlerFailed("the schema of a form for the client is not valid") from error


def levels_from(minimum: object) -> Iterable[LogLevel]:
    """The log levels from `minimum` upwards; none if `minimum` is not a level."""
    return next((LEVELS[index:] for index, level in enumerate(LEVELS) if level == minimum), ())
