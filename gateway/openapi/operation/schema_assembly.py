"""The assembly of arguments and shared schemas into one JSON schema within the limits."""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import jsonschema_rs
import msgspec
import orjson

from gateway.domain.json_access import as_object, encode_exact
from gateway.domain.listed.arguments import describe_original
from gateway.openapi.operation.limits import MAX_PATTERN_BYTES, MAX_SCHEMA_BYTES, MEMBER_BYTES
from gateway.openapi.schema.components import Component, Components
from gateway.openapi.schema.examples import Path
from gateway.openapi.schema.limits import MAX_SCHEMAS
from gateway.openapi.schema.relaxation import forget_patterns, relax
from gateway.openapi.schema.translation import Schema, Translated

_TOO_PATTERNED = "its patterns exceed the memory limit in total, so they are dropped"
_LIMITS = f"{MAX_SCHEMA_BYTES // 1024} KiB or {MAX_SCHEMAS} schemas"


class Argument(msgspec.Struct, frozen=True, kw_only=True):
    """One property of a tool's input, or the result in an output schema.

    `where` is its position in the document, and `texts` are the paths in its schema whose values are sent as text.
    `original` is the name of its parameter, if the argument has another one.
    """

    name: str
    translated: Translated
    is_required: bool = False
    where: str = ""
    texts: frozenset[Path] = frozenset()
    original: str | None = None

    def described(self, schema: object) -> object:
        """Return a form of its schema; the description begins with the original name, if there is one."""
        node = as_object({} if schema is True else schema)
        if self.original is None or node is None:
            return schema
        return {**node, "description": describe_original(self.original, node.get("description"))}


class Assembly(msgspec.Struct, frozen=True, kw_only=True):
    """An assembled schema, its JSON bytes, and the losses."""

    schema: dict[str, object]
    text: bytes
    losses: tuple[str, ...] = ()


def assemble(arguments: Sequence[Argument], needed: Sequence[Component], components: Components) -> Assembly:
    """Assemble one schema from these arguments and the shared schemas they need.

    Beyond the limits, the shared schemas lose titles and descriptions. If that is not enough, the farthest ones accept
    any value. If any schema was loosened, keywords that would become stricter are removed. Patterns that need too much
    memory are removed.
    """
    properties = {argument.name: argument.described(argument.translated.schema) for argument in arguments}
    root = input_root(properties, [argument.name for argument in arguments if argument.is_required])
    base = len(orjson.dumps(root))
    losses: tuple[str, ...] = ()
    if not _fits(base, arguments, needed):
        needed = [components.brief(part) for part in needed]
        losses = (f"descriptions are dropped, because it would exceed {_LIMITS}",)
    included = needed if _fits(base, arguments, needed) else _nearest(base, arguments, needed)
    omitted = needed[len(included) :]
    if omitted:
        losses = (*losses, f"{len(omitted)} of its schemas lie beyond {_LIMITS}; anything is accepted there")
    is_costly = sum(part.pattern_bytes for part in parts(arguments, included)) > MAX_PATTERN_BYTES
    if is_costly:
        losses = (*losses, _TOO_PATTERNED)
    if omitted or is_costly or any(part.is_loosened for part in parts(arguments, included)):
        stubs = _stubs(arguments, included, omitted)
        relaxed = relax(define(root, {part.name: part.schema for part in included} | stubs))
        schema = cast("dict[str, object]", forget_patterns(relaxed) if is_costly else relaxed)
        return Assembly(schema=schema, text=encode_exact(schema), losses=losses)
    schema = define(root, {part.name: part.schema for part in included})
    text = encode_exact(define(root, {part.name: orjson.Fragment(part.text) for part in included}))
    return Assembly(schema=schema, text=text, losses=losses)


def closure(arguments: Sequence[Argument], components: Components) -> Sequence[Component]:
    """Return the shared schemas that these arguments reference, directly or indirectly, nearest first."""
    return components.closure(link for argument in arguments for link in argument.translated.links)


def parts(arguments: Sequence[Argument], needed: Sequence[Component]) -> Iterator[Translated]:
    """Yield the translated schemas of the arguments and of the shared schemas."""
    yield from (argument.translated for argument in arguments)
    yield from (component.translated for component in needed)


def compiles(schema: dict[str, object]) -> bool:
    """True if the schema compiles with the validator settings for calls."""
    options = jsonschema_rs.RegexOptions()
    try:
        jsonschema_rs.Draft202012Validator(schema, validate_formats=True, offline=True, pattern_options=options)
    except (ValueError, jsonschema_rs.ReferencingError):
        return False
    return True


def compiles_once(schema: dict[str, object], components: Components) -> bool:
    """True if an assembled schema compiles; shared schemas that have compiled before are not compiled again.

    A shared schema stays valid when it is assembled, relaxed or widened.
    """
    definitions = cast("dict[str, object]", schema.get("$defs", {}))
    fresh = {name: part for name, part in definitions.items() if name not in components.compiled}
    known = {name: True for name in definitions if name not in fresh}
    reached = [{"$ref": f"#/$defs/{name}"} for name in fresh]  # a known schema may be the only one that refers to it
    if not compiles({**schema, "$defs": known | fresh, **({"allOf": reached} if reached else {})}):
        return compiles(schema)
    components.compiled.update(name for name, part in fresh.items() if part)  # not from a stub, which always compiles
    return True


def input_root(properties: Mapping[str, object], required: Sequence[str]) -> dict[str, object]:
    """Return the input schema of these arguments without the shared schemas."""
    root: dict[str, object] = {"type": "object", "properties": properties}
    if required:
        root["required"] = required
    root["additionalProperties"] = False
    return root


def define(root: dict[str, object], definitions: Mapping[str, object]) -> dict[str, object]:
    """Return a schema with the shared schemas that it references."""
    return root | {"$defs": definitions} if definitions else root


def _fits(base: int, arguments: Sequence[Argument], needed: Sequence[Component]) -> bool:
    length = base + len('"$defs":{},') + sum(len(part.text) + len(part.name) + MEMBER_BYTES for part in needed)
    return length <= MAX_SCHEMA_BYTES and sum(part.count for part in parts(arguments, needed)) <= MAX_SCHEMAS


def _nearest(base: int, arguments: Sequence[Argument], needed: Sequence[Component]) -> Sequence[Component]:
    """Return the nearest shared schemas within the limits; bytes for stubs of the others are reserved."""
    max_member = max(len(part.name) for part in needed) + 2 * MEMBER_BYTES
    length = base + max_member * sum(len(argument.translated.links) for argument in arguments)
    count = sum(argument.translated.count for argument in arguments)
    included: list[Component] = []
    for part in needed:
        length += len(part.text) + max_member * (1 + len(part.translated.links))
        count += part.translated.count
        if length > MAX_SCHEMA_BYTES or count > MAX_SCHEMAS:
            break
        included.append(part)
    return included


def _stubs(
    arguments: Sequence[Argument], included: Sequence[Component], omitted: Sequence[Component]
) -> dict[str, Schema]:
    """Return empty schemas for dropped ones, so that references from included schemas stay valid."""
    linked = {link for part in parts(arguments, included) for link in part.links}
    return {part.name: {} for part in omitted if part.ref in linked}
