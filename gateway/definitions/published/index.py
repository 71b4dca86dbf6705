"""Index of the published JSON Schemas for definitions, handlers and live sources; each schema is self-contained.

The schemas do not express all rules. Only the validators check templates, URI templates, schemas inside tools, the
fields that a family allows, and budgets.
"""

import copy
from collections.abc import Iterator, Mapping

from gateway.definitions.json_schema.dialects import DEFAULT
from gateway.definitions.published.definitions import PROMPT, RESOURCE, RESOURCE_TEMPLATE, SHARED, TOOL, Schema
from gateway.definitions.published.handlers import HANDLERS, STEP_PARTS
from gateway.definitions.published.live import LIVE_SETTINGS
from gateway.domain.json_access import as_list, as_object

_SCHEMAS: Mapping[str, Schema] = {
    "tool": TOOL,
    "resource": RESOURCE,
    "resource_template": RESOURCE_TEMPLATE,
    "prompt": PROMPT,
    **{kind.value: schema for kind, schema in HANDLERS.items()},
    **{f"live_source_{kind.value}": schema for kind, schema in LIVE_SETTINGS.items()},
}
_PARTS: Mapping[str, Schema] = {**SHARED, **STEP_PARTS}

NAMES = tuple(_SCHEMAS)
"""Names of the published schemas: definitions by family, handlers and settings of live sources by kind."""


def schema_of(name: str) -> dict[str, object] | None:
    """Return the published schema of this name with the shared definitions that it uses; None if there is none."""
    schema = _SCHEMAS.get(name)
    if schema is None:
        return None
    needed: dict[str, Schema] = {}
    left = list(_names_in(schema))
    while left:
        part = left.pop()
        if part not in needed:
            needed[part] = _PARTS[part]
            left.extend(_names_in(_PARTS[part]))
    whole: dict[str, object] = {"$schema": DEFAULT.uri, "title": name, **schema}
    if needed:
        whole["$defs"] = {part: needed[part] for part in sorted(needed)}
    return copy.deepcopy(whole)


def _names_in(value: object) -> Iterator[str]:
    """Return the names of the shared definitions that a schema refers to."""
    for name, member in (as_object(value) or {}).items():
        if name == "$ref" and isinstance(member, str):
            yield member.rpartition("/")[2]
        else:
            yield from _names_in(member)
    for element in as_list(value) or ():
        yield from _names_in(element)
