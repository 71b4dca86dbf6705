"""Selection of fields: the argument `_fields` of imported tools, if a profile offers it (decision 53).

The argument never leaves the gateway. The selected parts are extracted from the response before the result is rendered,
so that parts of large responses arrive complete; guardrails check the extracted parts.
"""

from collections.abc import Mapping, Sequence
from typing import cast

from gateway.calls.invocation import Invocation
from gateway.calls.upstream_errors import FIRST_ERROR
from gateway.catalog.snapshots.field_argument import MAX_FIELDS, offers_fields
from gateway.definitions.excerpts import quote
from gateway.definitions.handlers.specs import ResultSpec
from gateway.definitions.projection import MAX_POINTER_LENGTH, find_missing, is_path
from gateway.domain.fairness.large_work import run_large
from gateway.domain.http.requests import UpstreamResponse
from gateway.domain.identifiers import TenantId
from gateway.domain.json_access import as_list, as_object
from gateway.domain.tools import FIELDS, Tool
from gateway.errors import ArgumentsInvalid, Fault, HandlerFailed
from gateway.handlers.http_request import project_answer
from gateway.handlers.response_body.reading import read_json

_MAX_VISITS = 20_000
"""Limit on the parts that are visited to find missing ones."""
_MAX_NAMED = 10


def may_select(call: Invocation, tool: Tool) -> bool:
    """True if a client receives the result, directly or from `call_endpoint`, and its profile adds `_fields`."""
    if call.lookup is None or not (call.reaches_client and call.lookup.selects_fields):  # guard: fields-of-the-profile
        return False
    return offers_fields(tool)


def take_fields(arguments: Mapping[str, object]) -> tuple[Mapping[str, object], tuple[str, ...]]:
    """Return the arguments without `_fields`, and the selected paths; no paths if `_fields` is null.

    Raises:
        ArgumentsInvalid: `_fields` is not a list of 1 to 50 JSON Pointers.
    """
    others = {name: value for name, value in arguments.items() if name != FIELDS}
    raw_paths = arguments[FIELDS]
    if raw_paths is None:
        return others, ()
    paths = cast("list[object]", raw_paths) if isinstance(raw_paths, list) else []
    if not 0 < len(paths) <= MAX_FIELDS:  # guard: fields-bounded
        raise _invalid(f"/{FIELDS}", f"must be a list of 1 to {MAX_FIELDS} JSON Pointers")
    for index, path in enumerate(paths):
        if not isinstance(path, str) or not is_path(path):
            reason = f"must be a JSON Pointer such as /items/*/id, of at most {MAX_POINTER_LENGTH} characters"
            raise _invalid(f"/{FIELDS}/{index}", reason)
    return others, tuple(cast("list[str]", paths))


async def select_fields(
    tenant: TenantId, response: UpstreamResponse, paths: Sequence[str]
) -> tuple[UpstreamResponse, str | None]:
    """Return the response with the selected parts in their containers, and a note about parts that could not be
    selected.

    An error, and a response that is not a JSON object or list, are unchanged.
    """
    if response.status >= FIRST_ERROR or not response.body:
        return response, None
    return await run_large(tenant, len(response.body), _select, response, paths)


def _select(response: UpstreamResponse, paths: Sequence[str]) -> tuple[UpstreamResponse, str | None]:
    try:
        value = read_json(response)
        if as_object(value) is None and as_list(value) is None:
            raise HandlerFailed("the response is not a JSON object or list")
        selected = project_answer(response, ResultSpec(keep=tuple(paths)))
    except HandlerFailed as error:
        return response, f"{FIELDS} had no effect: {error.message}. The result is complete."
    missing = [quote(path) for path in find_missing(value, paths, max_visits=_MAX_VISITS)]
    if not missing:
        return selected, None
    shown_paths = ", ".join(missing[:_MAX_NAMED]) + (" and more" if len(missing) > _MAX_NAMED else "")
    return selected, f"The result has nothing at {shown_paths}."


def _invalid(pointer: str, reason: str) -> ArgumentsInvalid:
    fault = Fault(pointer=pointer, reason=reason)
    return ArgumentsInvalid(f"the arguments do not match the tool's input schema: {FIELDS}", faults=(fault,))
