"""What may be asked of a client, as both eras write it: methods, the capabilities they need, the form of answers."""

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

from gateway.errors import CapabilityMissing
from gateway.handlers.port import LogLevel, Question, QuestionKind

METHODS: Final[Mapping[QuestionKind, str]] = {
    "elicitation": "elicitation/create",
    "sampling": "sampling/createMessage",
    "roots": "roots/list",
}
ANSWER_S: Final = 300.0
"""For how long an answer is waited for in a session."""

LEVELS: Final[tuple[LogLevel, ...]] = get_args(LogLevel)
"""From the least severe to the most (RFC 5424)."""

_ANSWERS: Final[Mapping[QuestionKind, TypeAdapter[Any]]] = {
    "elicitation": TypeAdapter(ElicitResult),
    "sampling": TypeAdapter(CreateMessageResult | CreateMessageResultWithTools),
    "roots": TypeAdapter(ListRootsResult),
}


def request_of(question: Question) -> dict[str, Any]:
    """The question as method and parameters."""
    request: dict[str, Any] = {"method": METHODS[question.kind]}
    if question.params:
        request["params"] = dict(question.params)
    return request


def need(question: Question, can: Callable[[str], bool]) -> None:
    """Refuse a question that this client said nothing of being able to answer.

    Raises:
        CapabilityMissing: it did not declare what the question needs.
    """
    is_page = question.kind == "elicitation" and question.params.get("mode") == "url"
    capability = "elicitation.url" if is_page else question.kind
    if not can(capability):
        raise CapabilityMissing(f"the client did not declare {capability}", capability=capability)


def declares(capabilities: ClientCapabilities | None, kind: str) -> bool:
    """Whether the client declared it; elicitation without a mode is a form, as it was before there were modes."""
    if capabilities is None:
        return False
    asked = capabilities.elicitation
    match kind:
        case "elicitation":
            return asked is not None and (asked.form is not None or asked.url is None)
        case "elicitation.url":
            return asked is not None and asked.url is not None
        case "sampling":
            return capabilities.sampling is not None
        case "roots":
            return capabilities.roots is not None
        case _:
            return False


def is_answer(kind: QuestionKind, answer: object) -> bool:
    """Whether an object has the form of an answer to such a question."""
    try:
        _ANSWERS[kind].validate_python(answer, by_name=False)
    except ValidationError:
        return False
    return True


def wanted_levels(least: object) -> Iterable[LogLevel]:
    """The levels at or above the least severe one that is wanted; none for what is no level."""
    return next((LEVELS[place:] for place, level in enumerate(LEVELS) if level == least), ())
