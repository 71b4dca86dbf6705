"""The input schema of a tool: valid, self-contained and within its limits.

An argument that is too large or does not compile accepts any value.
"""

from collections.abc import Sequence

import msgspec
import orjson
from msgspec.structs import replace

from gateway.openapi.document.json_access import Unusable
from gateway.openapi.operation.example_checks import ExampleChecks
from gateway.openapi.operation.limits import MAX_SCHEMA_BYTES, MEMBER_BYTES
from gateway.openapi.operation.schema_assembly import Argument, assemble, closure, compiles, compiles_once, parts
from gateway.openapi.schema.components import Component, Components
from gateway.openapi.schema.limits import MAX_SCHEMAS
from gateway.openapi.schema.translation import Translated

_ANYTHING = Translated(schema={}, is_loosened=True)
_OWN_SHARE = MAX_SCHEMA_BYTES // 2
"""Bytes of the arguments' own schemas; the other half is for the shared schemas that they reference."""


class InputSchema(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's input schema as JSON bytes, its parts, and one note for each constraint that was dropped."""

    text: bytes
    losses: tuple[str, ...] = ()
    arguments: Sequence[Argument] = ()
    needed: Sequence[Component] = ()
    """The shared schemas that the arguments reference, nearest first."""


def compose_input(arguments: Sequence[Argument], components: Components, examples: ExampleChecks) -> InputSchema:
    """Compose the input schema of a tool with these arguments.

    Raises:
        Unusable: a schema references another document, the argument names exceed `MAX_SCHEMA_BYTES`, or the schema
            does not compile.
    """
    needed = closure(arguments, components)
    for part in parts(arguments, needed):
        if part.external is not None:
            raise Unusable(part.external)
    arguments, needed = examples.settle(arguments, needed)
    losses = dict.fromkeys(loss for part in parts(arguments, needed) for loss in part.losses)
    fitting, too_large = _loosen_largest(arguments)
    needed = closure(fitting, components) if too_large else needed
    assembly = assemble(fitting, needed, components)
    broken: tuple[str, ...] = ()
    if not compiles_once(assembly.schema, components):
        fitting, broken = _loosen_broken(fitting, components)
        needed = closure(fitting, components)
        assembly = assemble(fitting, needed, components)
        if not compiles(assembly.schema):
            raise Unusable("the input schema does not compile")
    losses = dict.fromkeys((*losses, *too_large, *broken, *assembly.losses))
    return InputSchema(text=assembly.text, losses=tuple(losses), arguments=fitting, needed=needed)


def _loosen_largest(arguments: Sequence[Argument]) -> tuple[Sequence[Argument], tuple[str, ...]]:
    """Let the largest arguments accept any value until the rest fits `_OWN_SHARE` bytes and `MAX_SCHEMAS` schemas."""
    weighed = [(len(orjson.dumps(argument.translated.schema)), argument) for argument in arguments]
    length = sum(
        size + len(argument.name) * 2 + len(argument.original or "") + MEMBER_BYTES for size, argument in weighed
    )
    count = sum(argument.translated.count for argument in arguments)
    loosened: set[str] = set()
    for size, argument in sorted(weighed, key=lambda pair: -pair[0]):
        if length <= _OWN_SHARE and count <= MAX_SCHEMAS:
            break
        loosened.add(argument.name)
        length -= size
        count -= argument.translated.count
    if length > MAX_SCHEMA_BYTES:
        raise Unusable(f"the argument names exceed {MAX_SCHEMA_BYTES // 1024} KiB")
    reason = f"was replaced because the arguments exceed {_OWN_SHARE // 1024} KiB or {MAX_SCHEMAS} schemas"
    return _loosen(arguments, loosened, reason)


def _loosen_broken(arguments: Sequence[Argument], components: Components) -> tuple[Sequence[Argument], tuple[str, ...]]:
    broken = {argument.name for argument in arguments if not _is_sound(argument, components)}
    return _loosen(arguments, broken, "has a schema that does not compile")


def _is_sound(argument: Argument, components: Components) -> bool:
    return compiles(assemble([argument], closure([argument], components), components).schema)


def _loosen(arguments: Sequence[Argument], names: set[str], reason: str) -> tuple[Sequence[Argument], tuple[str, ...]]:
    if not names:
        return arguments, ()
    loosened = [replace(item, translated=_ANYTHING) if item.name in names else item for item in arguments]
    notes = (f"argument '{item.name}' {reason}; anything is accepted" for item in arguments if item.name in names)
    return loosened, tuple(notes)
