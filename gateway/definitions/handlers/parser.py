"""Strict parser of handlers declared as JSON. Unknown fields are refused; faults have JSON Pointers."""

from collections.abc import Callable, Collection, Mapping

from gateway.definitions.contract.contents import declare_contents, declare_messages, validate_content
from gateway.definitions.field_reader import Faults, FieldReader, copy_untrusted
from gateway.definitions.handlers.fields import (
    DECLARED_RESULT_FIELDS,
    LISTED,
    read_declared_result,
    read_tree,
    refuse_in_other_families,
)
from gateway.definitions.handlers.limits import MAX_COMPLETION_VALUE_LENGTH, MAX_COMPLETION_VALUES, MAX_OPERATION_LENGTH
from gateway.definitions.handlers.requests import LOOKUP_FIELDS, REQUEST_FIELDS, read_request
from gateway.definitions.handlers.specs import (
    Action,
    CompletionSpec,
    FetchedValues,
    HandlerKind,
    HandlerSpec,
    ListedValues,
    OpenApiSpec,
    StaticSpec,
    StepsSpec,
)
from gateway.definitions.handlers.steps import StepsReader
from gateway.definitions.templates.template import Tree
from gateway.domain.json_access import as_object, point
from gateway.domain.primitives import Family
from gateway.errors import DefinitionInvalid, HandlerInvalid

STATIC_FIELDS = ("content", "contents", "messages", "isError", "structuredContent")
OPENAPI_FIELDS = ("source", "operation", "arguments")
FIELDS: Mapping[HandlerKind, tuple[str, ...]] = {
    HandlerKind.STATIC: STATIC_FIELDS,
    HandlerKind.TEMPLATE: DECLARED_RESULT_FIELDS,
    HandlerKind.HTTP: REQUEST_FIELDS,
    HandlerKind.STEPS: ("steps",),
    HandlerKind.OPENAPI: OPENAPI_FIELDS,
}

_FAMILIES_WITH_COMPLETIONS = (Family.PROMPT, Family.TEMPLATE)
_DECLARED: Mapping[str, Callable[[object], tuple[dict[str, object], ...]]] = {
    "content": validate_content,
    "contents": declare_contents,
    "messages": declare_messages,
}


def parse_handler(
    raw: object, family: Family, *, arguments: Collection[str] | None = None, where: str = "/handler"
) -> HandlerSpec:
    """Return the spec of a handler that is declared for a primitive of this family.

    `arguments` are the names of the prompt's arguments or the URI template's variables; completions for other names are
    refused. None allows any name.

    Raises:
        HandlerInvalid: the declaration does not have the form of a known kind. The pointers of its faults begin with
            `where`.
    """
    faults = Faults()
    sent = _copied(raw, where, faults)
    kind = _kind(sent, where, faults)
    faults.raise_as(HandlerInvalid, "handler")
    reader = FieldReader(sent, ("kind", *FIELDS[kind], "completions"), where=where, faults=faults)
    action = _READERS[kind](reader, family)
    completions = _completions(reader, family, arguments)
    faults.raise_as(HandlerInvalid, "handler")
    if action is None:
        raise HandlerInvalid("handler: invalid JSON")
    return HandlerSpec(kind=kind, family=family, action=action, completions=completions)


def _copied(raw: object, where: str, faults: Faults) -> object:
    try:
        return copy_untrusted(raw, HandlerInvalid, "handler")
    except HandlerInvalid as wrong:
        faults.take(wrong, where)
        faults.raise_as(HandlerInvalid, "handler")
        return None


def _kind(sent: object, where: str, faults: Faults) -> HandlerKind:
    members = as_object(sent)
    if members is None:
        faults.add(where, "must be an object")
    elif "kind" not in members:
        faults.add(where + "/kind", "is missing")
    elif members["kind"] not in tuple(HandlerKind):
        faults.add(where + "/kind", f"must be one of {', '.join(HandlerKind)}")
    else:
        return HandlerKind(str(members["kind"]))
    return HandlerKind.STATIC


def _static(reader: FieldReader, family: Family) -> Action | None:
    wanted = LISTED[family]
    for name in _DECLARED:
        if reader.has(name) and name != wanted:
            reader.refuse(name, f"is not a possible result of a {family.value}; use one of {wanted}")
    reader.require(wanted)
    refuse_in_other_families(reader, family, "isError", (Family.TOOL,))
    refuse_in_other_families(reader, family, "structuredContent", (Family.TOOL,))
    listed: tuple[dict[str, object], ...] = ()
    if reader.has(wanted):
        try:
            listed = _DECLARED[wanted](reader.raw(wanted))
        except DefinitionInvalid as wrong:
            reader.faults.take(wrong, reader.at(wanted))
    if not listed and wanted == "contents" and reader.has(wanted):
        reader.refuse(wanted, "must not be empty")
    return StaticSpec(
        content=listed if wanted == "content" else (),
        contents=listed if wanted == "contents" else (),
        messages=listed if wanted == "messages" else (),
        structured_content=reader.raw("structuredContent"),
        is_error=reader.flag("isError") or False,
    )


def _template(reader: FieldReader, family: Family) -> Action | None:
    return read_declared_result(reader, family)


def _http(reader: FieldReader, _: Family) -> Action | None:
    return read_request(reader)


def _steps(reader: FieldReader, family: Family) -> Action | None:
    return StepsSpec(steps=StepsReader(family, reader.faults).read(reader, "steps"))


def _openapi(reader: FieldReader, _: Family) -> Action | None:
    source = reader.string("source", max_length=64, required=True)
    operation = reader.string("operation", max_length=MAX_OPERATION_LENGTH, required=True)
    arguments = read_tree(reader, "arguments") or Tree.parse({})
    if not isinstance(arguments.source, dict):
        reader.refuse("arguments", "must be an object")
    if source is None or operation is None:
        return None
    return OpenApiSpec(source=source, operation=operation, arguments=arguments)


def _completions(
    reader: FieldReader, family: Family, arguments: Collection[str] | None
) -> Mapping[str, CompletionSpec]:
    refuse_in_other_families(reader, family, "completions", _FAMILIES_WITH_COMPLETIONS)
    found: dict[str, CompletionSpec] = {}
    for name, raw in (reader.members("completions") or {}).items():
        where = reader.at("completions") + point(name)
        if arguments is not None and name not in arguments:
            reader.faults.add(where, "is not an argument or variable of this primitive")
        completion = _completion(FieldReader(raw, ("values", "http"), where=where, faults=reader.faults))
        if completion is not None:
            found[name] = completion
    return found


def _completion(reader: FieldReader) -> CompletionSpec | None:
    if reader.has("values") is reader.has("http"):
        if reader.is_object:
            reader.faults.add(reader.where, "must have either values or http")
        return None
    if reader.has("values"):
        values = reader.strings("values", max_items=MAX_COMPLETION_VALUES, max_length=MAX_COMPLETION_VALUE_LENGTH)
        return ListedValues(values=tuple(dict.fromkeys(values)))
    request = read_request(
        FieldReader(reader.raw("http"), LOOKUP_FIELDS, where=reader.at("http"), faults=reader.faults)
    )
    return None if request is None else FetchedValues(http=request)


_READERS: Mapping[HandlerKind, Callable[[FieldReader, Family], Action | None]] = {
    HandlerKind.STATIC: _static,
    HandlerKind.TEMPLATE: _template,
    HandlerKind.HTTP: _http,
    HandlerKind.STEPS: _steps,
    HandlerKind.OPENAPI: _openapi,
}
