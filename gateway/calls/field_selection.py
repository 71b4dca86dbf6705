"""Selection of fields: the argument `_fields` of imported tools, if a profile offers it (decision 53).

The argument never leaves the gateway. The selected parts are extracted from the response before the result is rendered,
so that parts of large responses arrive complete; guardrails check the extracted parts.
"""

from collections.abc import Mapping
from typing import cast

from gateway.calls.invocation import Invocation
from gateway.catalog.snapshots.field_argument import FIELDS_SCHEMA, offers_fields
from gateway.catalog.snapshots.limits import MAX_FIELDS
from gateway.definitions.json_schema.coercion import readings
from gateway.definitions.limits import MAX_POINTER_LENGTH
from gateway.definitions.projection import is_path
from gateway.domain.tools import FIELDS, Tool
from gateway.errors import ArgumentsInvalid, Fault

_ARGUMENTS: Mapping[str, object] = {"type": "object", "properties": {FIELDS: FIELDS_SCHEMA}}


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
    if not isinstance(raw_paths, list):
        read = readings(_ARGUMENTS, {FIELDS: raw_paths})  # one path, or the list as JSON text
        raw_paths = read[0][FIELDS] if len(read) == 1 else raw_paths
    paths = cast("list[object]", raw_paths) if isinstance(raw_paths, list) else []
    if not 0 < len(paths) <= MAX_FIELDS:  # guard: fields-bounded
        raise _invalid(f"/{FIELDS}", f"must be a list of 1 to {MAX_FIELDS} JSON Pointers")
    for index, path in enumerate(paths):
        if not isinstance(path, str) or not is_path(path):
            reason = f"must be a JSON Pointer such as /items/*/id, of at most {MAX_POINTER_LENGTH} characters"
            raise _invalid(f"/{FIELDS}/{index}", reason)
    return others, tuple(cast("list[str]", paths))


def _invalid(pointer: str, reason: str) -> ArgumentsInvalid:
    fault = Fault(pointer=pointer, reason=reason)
    return ArgumentsInvalid(f"the arguments do not match the tool's input schema: {FIELDS}", faults=(fault,))
