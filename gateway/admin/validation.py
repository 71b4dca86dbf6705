"""Validation of request bodies and query strings. Validation errors are converted to faults."""

from collections.abc import Sequence
from typing import TypeVar, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gateway.admin.large_bodies import load_large
from gateway.admin.limits import MAX_REST_BYTES
from gateway.admin.requests.documents import DocumentSent
from gateway.definitions.limits import MAX_FAULTS
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.json_access import point
from gateway.domain.json_text import load_json
from gateway.domain.members.formats import WORDS
from gateway.errors import BadInput, Fault, InvalidBody
from gateway.web.models import BodyModel, QueryModel

_LARGE_BODY = 256 * 1024
_NONE_BRANCH_ERROR = "none_required"
"""Pydantic's error type for the `None` branch of an optional field; `None` is only the default of an absent field."""

B = TypeVar("B", bound=BodyModel)
Q = TypeVar("Q", bound=QueryModel)


def is_large(raw: bytes, model: type[BodyModel]) -> bool:
    """True if the document is extracted before the body is parsed."""
    return len(raw) > max(MAX_REST_BYTES, model.whole_bytes) and not issubclass(model, DocumentSent)


async def read_body(raw: bytes, model: type[B], *, tenant: str = "", media_type: str = "application/json") -> B:
    """Validate the body as `model`. A `DocumentSent` is not parsed.

    A body above 256 KiB is parsed in a thread. From a body above 1 MiB, the document is extracted first.

    Raises:
        InvalidBody: the body is not JSON or does not have the documented form.
        DocumentTooLarge: the body has more than 1 MiB in addition to its document.
    """
    if issubclass(model, DocumentSent):
        return model(content=raw, media_type=media_type)
    raw = raw.rstrip(b" \t\r\n")  # the white space of JSON
    if model.is_optional and not raw:
        return model()
    if len(raw) > _LARGE_BODY:
        content = await run_in_thread(CATALOG_CHANGES, tenant, load_large if is_large(raw, model) else load_json, raw)
    else:
        content = load_json(raw)
    if not isinstance(content, dict):
        raise InvalidBody("the body must be a JSON object", faults=[Fault(pointer="", reason="must be an object")])
    return validate(cast("object", content), model)


def validate(content: object, model: type[B]) -> B:
    """Validate the value of a body, or of a part of it, as `model`.

    Raises:
        InvalidBody: it does not have the documented form.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        faults = _convert_errors(error, model, content)
        raise InvalidBody(_summary("the body", faults), faults=faults) from None


def read_query(pairs: Sequence[tuple[str, str]], model: type[Q]) -> Q:
    """Validate the query parameters as `model`.

    Raises:
        BadInput: a parameter is unknown, sent twice or not allowed.
    """
    given: dict[str, str] = {}
    for name, value in pairs:
        if name in given:
            raise BadInput(f"the query: {name[:50]} occurs twice", faults=[_parameter_fault(name, "given twice")])
        given[name] = value
    try:
        return model.model_validate(given)
    except ValidationError as error:
        faults = [
            _parameter_fault(fault.pointer.removeprefix("/"), fault.reason)
            for fault in _convert_errors(error, model, given)
        ]
        raise BadInput(_summary("the query", faults), faults=faults) from None


def _parameter_fault(name: str, reason: str) -> Fault:
    return Fault(pointer=f"?{name[:100]}", reason=reason)


def _summary(what: str, faults: Sequence[Fault]) -> str:
    first = faults[0]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return f"{what}{f' at {first.pointer}' if first.pointer else ''}: {first.reason}{more}"


def _convert_errors(error: ValidationError, model: type[BaseModel], content: object) -> list[Fault]:
    """Convert validation errors to faults, one per position. They contain no values, because values can be secrets."""
    found: dict[str, Fault] = {}
    details = error.errors(include_url=False, include_input=False)
    for detail in [detail for detail in details if detail["type"] != _NONE_BRANCH_ERROR][: MAX_FAULTS * 2]:
        pointer = _pointer(detail, content)
        reason = _reason(detail, model)
        if pointer not in found:
            found[pointer] = Fault(pointer=pointer, reason=reason)
        elif reason not in found[pointer].reason:
            found[pointer] = Fault(pointer=pointer, reason=f"{found[pointer].reason}; or: {reason}")
    return list(found.values())[:MAX_FAULTS]


def _pointer(detail: ErrorDetails, content: object) -> str:
    """Return the position as a JSON Pointer (RFC 6901), without the union branches that Pydantic adds."""
    parts: list[str] = []
    here: object = content
    for position, part in enumerate(detail["loc"]):
        if isinstance(here, dict) and part in here:
            here = cast("dict[object, object]", here)[part]
        elif isinstance(here, list) and isinstance(part, int) and part < len(cast("list[object]", here)):
            here = cast("list[object]", here)[part]
        elif not (detail["type"] == "missing" and position == len(detail["loc"]) - 1):
            continue
        parts.append(str(part)[:200])
    return point(*parts)


def _reason(detail: ErrorDetails, model: type[BaseModel]) -> str:
    if detail["type"] == "extra_forbidden":
        what = "unknown parameter" if issubclass(model, QueryModel) else "unknown field"
        allowed = ", ".join(model.model_fields) if len(detail["loc"]) == 1 else ""
        return f"{what}; allowed: {allowed}" if allowed else what
    if detail["type"] == "missing":
        return "required"
    if detail["type"] == "string_pattern_mismatch" and (words := WORDS.get(detail.get("ctx", {}).get("pattern", ""))):
        return words
    text = detail["msg"].removeprefix("Value error, ").replace(" after validation, not ", ", not ")
    return text[:1].lower() + text[1:]
