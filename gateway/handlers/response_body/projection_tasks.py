"""Tasks that select parts of JSON bodies: the projections of handlers and overrides, and the argument `_fields`."""

from typing import Final

import msgspec

from gateway.definitions.excerpts import quote
from gateway.definitions.handlers.specs import ResultSpec
from gateway.definitions.projection import drop, find_missing, keep, point
from gateway.domain.json_access import as_list, as_object
from gateway.domain.tools import FIELDS
from gateway.errors import HandlerFailed
from gateway.handlers.response_body.limits import MAX_NAMED, MAX_VISITS
from gateway.handlers.response_body.reading import decode_body
from gateway.sandbox.result_tasks import ResultTask


class SelectedFields(msgspec.Struct, frozen=True):
    """The selected parts, None if nothing was selected, and a note about parts that could not be selected."""

    body: bytes | None
    note: str | None = None


def _project(spec: ResultSpec, body: bytes) -> bytes:
    return _projected(decode_body(body), spec)


def _projected(value: object, spec: ResultSpec) -> bytes:
    if spec.pointer is not None:
        value = point(value, spec.pointer)
    if spec.keep:
        value = keep(value, spec.keep)
    if spec.drop:
        value = drop(value, spec.drop)
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError):
        raise HandlerFailed("the upstream's response cannot be written as JSON") from None


def _select(spec: ResultSpec, body: bytes) -> SelectedFields:
    try:
        value = decode_body(body)
        if as_object(value) is None and as_list(value) is None:
            raise HandlerFailed("the response is not a JSON object or list")
        selected = _projected(value, spec)
    except HandlerFailed as error:
        return without_effect(error)
    missing = [quote(path) for path in find_missing(value, spec.keep, max_visits=MAX_VISITS)]
    if not missing:
        return SelectedFields(selected)
    shown_paths = ", ".join(missing[:MAX_NAMED]) + (" and more" if len(missing) > MAX_NAMED else "")
    return SelectedFields(selected, f"The result has nothing at {shown_paths}.")


def without_effect(error: HandlerFailed) -> SelectedFields:
    """Return the selection that failed with this error."""
    return SelectedFields(None, f"{FIELDS} had no effect: {error.message}. The result is complete.")


PROJECT: Final = ResultTask("project", _project, ResultSpec, bytes)
SELECT: Final = ResultTask("select", _select, ResultSpec, SelectedFields)
