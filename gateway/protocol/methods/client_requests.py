"""Questions to clients in all revisions: their methods, required capabilities, and the validation of answers.

The content of an accepted form is validated against the question's schema before the handler receives it.
"""

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
from gateway.errors import CapabilityMissing, ClientSilent, HandlerFailed
from gateway.handlers.interfaces import LogLevel, Question, QuestionKind

METHODS: Final[Mapping[QuestionKind, str]] = {
    "elicitation": "elicitation/create",
    "sampling": "sampling/createMessage",
    "roots": "roots/list",
}
ANSWER_TIMEOUT_S: Final = 300.0
"""Seconds that a call in a session waits for the answers to its questions."""

LEVELS: Final[tuple[LogLevel, ...]] = get_args(LogLevel)
"""Log levels from the least severe to the most severe (RFC 5424)."""

_ANSWERS: Final[Mapping[QuestionKind, TypeAdapter[Any]]] = {
    "elicitation": TypeAdapter(ElicitResult),
    "sampling": TypeAdapter(CreateMessageResult | CreateMessageResultWithTools),
    "roots": TypeAdapter(ListRootsResult),
}


def request_of(question: Question) -> dict[str, Any]:
    """The question as a JSON-RPC method and its parameters."""
    request: dict[str, Any] = {"method": METHODS[question.kind]}
    if question.params:
        request["params"] = dict(question.params)
    return request


def require_capability(question: Question, can: Callable[[str], bool]) -> None:
    """Refuse a question whose capability the client did not declare, or whose answer could not be validated.

    Raises:
        CapabilityMissing: the client did not declare what the question needs.
        HandlerFailed: the schema of the form is not valid.
    """
    is_page = question.kind == "elicitation" and question.params.get("mode") == "url"
    _validator_of(question)
    capability = "elicitation.url" if is_page else question.kind
    if not can(capability):
        raise CapabilityMissing(f"the client did not declare {capability}", capability=capability)


def supports(capabilities: ClientCapabilities | None, kind: str) -> bool:
    """True if the client declared the capability; elicitation without a mode means forms, as in revisions
    without modes.
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
        case _:
            return False


def is_valid_response(kind: QuestionKind, answer: object) -> bool:
    """True if an object has the form of an answer to this kind of question."""
    try:
        _ANSWERS[kind].validate_python(answer, by_name=False)
    except ValidationError:
        return False
    return True


def check_response(question: Question, answer: Mapping[str, Any]) -> None:
    """Refuse content that does not match its question's schema; content is checked only if the user accepted.

    Raises:
        ClientSilent: the content does not match; its faults point into the content.
        HandlerFailed: the schema of the form is not valid.
    """
    validator = _validator_of(question)
    if validator is None or answer.get("action") != "accept":
        return
    faults = find_faults(validator, answer.get("content") or {})
    if faults:
        raise ClientSilent("the client's answer does not match the schema of its form", faults=faults)


def _validator_of(question: Question) -> Validator | None:
    if question.kind != "elicitation" or "requestedSchema" not in question.params:
        return None
    try:
        return compile_ask_schema(question.params["requestedSchema"])
    except ValueError as error:
        raise HandlerFailed("the schema of a form for the client is not valid") from error


def levels_from(minimum: object) -> Iterable[LogLevel]:
    """The levels from the given one upwards; none if the value is not a level."""
    return next((LEVELS[index:] for index, level in enumerate(LEVELS) if level == minimum), ())
