"""Tools as a profile lists them, and the primitives that a profile adds to read parts of large results."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from gateway.catalog.snapshots.field_argument import offers_fields, with_fields, with_fields_of_operations
from gateway.definitions.large_results.read_result import READ_DEFINITION, READ_RESULT, TEMPLATE, TEMPLATE_DEFINITION
from gateway.domain.identifiers import PrimitiveId
from gateway.domain.json_access import Object
from gateway.domain.json_text import decode_json
from gateway.domain.listed.client_limits import (
    ClientFinding,
    find_count_limits,
    find_limits,
    find_refused_keywords,
)
from gateway.domain.listed.definition import listed_definition, names_dialect, renamed_definition
from gateway.domain.listed.names import ListedNames
from gateway.domain.primitives import Family, Primitive
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.profiles import Profile
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.openapi.query.tools import CALL

READ_TOOL: Final = Tool(
    name=READ_RESULT,
    definition=READ_DEFINITION,
    safety=Safety.SAFE,
    safety_reasons=("it only reads results that the caller has received",),
    origin=PrimitiveOrigin.BUILTIN,
)
READ_TEMPLATE: Final = Primitive(
    id=PrimitiveId("builtin:results"),
    family=Family.TEMPLATE,
    name=TEMPLATE,
    definition=TEMPLATE_DEFINITION,
    origin=PrimitiveOrigin.BUILTIN,
)

_OWN: Final = frozenset({PrimitiveOrigin.CUSTOM, PrimitiveOrigin.CODE})
_OUTPUT: Final = b'"outputSchema"'


@dataclass(frozen=True, slots=True)
class ListedForm:
    """The form in which a profile lists tools; profiles with equal settings have equal forms."""

    selects_fields: bool = False
    summarises: bool = False

    def __call__(self, tool: Tool) -> Tool:
        """Return the tool as the profile lists it; summaries have no output schema, because they may not match it."""
        if self.selects_fields and offers_fields(tool):
            return replace(tool, definition=with_fields(tool.definition))
        if self.selects_fields and tool.name == CALL and tool.origin is PrimitiveOrigin.BUILTIN:
            return replace(tool, definition=with_fields_of_operations(tool.definition))
        if self.summarises and _OUTPUT in tool.definition:  # guard: summary-without-output-schema
            return replace(tool, definition=_without_output(tool.definition))
        return tool


def to_stored(tool: Tool) -> dict[str, Any]:
    """Return the stored definition as an object."""
    stored: dict[str, Any] = decode_json(tool.definition)
    return stored


def is_exact(tool: Tool, stored: Object) -> bool:
    """True if the author of an own tool names the dialect of its schema, which is then listed keyword for keyword."""
    return tool.origin in _OWN and names_dialect(stored)


@dataclass(frozen=True, slots=True)
class ToolListing:
    """The form in which one profile of a tenant lists its tools."""

    names: ListedNames
    form: ListedForm | None = None

    def __call__(self, tool: Tool) -> dict[str, Any]:
        """Return the definition that clients receive."""
        shown = tool if self.form is None else self.form(tool)
        stored, name = decode_json(shown.definition), self.names.listed(tool.name)
        if is_exact(tool, stored):
            return renamed_definition(stored, name)
        return listed_definition(stored, name, is_imported=tool.origin is PrimitiveOrigin.SOURCE)

    def lists_the_same(self, tools: Sequence[Tool], other: "ToolListing", others: Sequence[Tool]) -> bool:
        """True if clients receive the same definitions of these tools from both."""
        if self.form != other.form or len(tools) != len(others):
            return False
        return all(
            one.definition == another.definition and self.names.listed(one.name) == other.names.listed(another.name)
            for one, another in zip(tools, others, strict=True)
        )


def find_client_limits(tools: Sequence[Tool], names: ListedNames) -> Sequence[ClientFinding]:
    """Return the limits of clients that a list of these tools exceeds."""
    listing = ToolListing(names)
    exact = [(tool, to_stored(tool)) for tool in tools if tool.origin in _OWN]
    refused = [one for tool, stored in exact if is_exact(tool, stored) for one in find_refused_keywords(stored)]
    return [*find_count_limits(len(tools)), *find_limits(map(listing, tools)), *refused[:1]]


def form_of(profile: Profile | None) -> ListedForm | None:
    """Return the form of a profile's tools; None if tools are listed unchanged."""
    if profile is None or not (profile.selects_fields or profile.summary_threshold):
        return None
    return ListedForm(profile.selects_fields, bool(profile.summary_threshold))


def added_tools(profile: Profile | None) -> Sequence[Tool]:
    """Return the tools that a profile adds to those it selects."""
    return (READ_TOOL,) if profile is not None and profile.summary_threshold else ()


def added_templates(profile: Profile | None) -> Sequence[Primitive]:
    """Return the resource templates that a profile adds to those it selects."""
    return (READ_TEMPLATE,) if profile is not None and profile.summary_threshold else ()


def _without_output(definition: bytes) -> bytes:
    found: dict[str, Any] = decode_json(definition)
    found.pop("outputSchema", None)
    return msgspec.json.encode(found)
