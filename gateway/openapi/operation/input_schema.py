"""The input schema of a tool: valid, self-contained, within its limits, and loosened where the document is broken."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import orjson

from gateway.openapi.document.json_access import Unusable
from gateway.openapi.operation.schema_assembly import LARGEST, Argument, assemble, closure, compiles, parts
from gateway.openapi.schema.components import MOST_SCHEMAS, Components
from gateway.openapi.schema.translation import Translated

_ANYTHING = Translated(schema={}, is_loosened=True)
_OWN_SHARE = LARGEST // 2
_MEMBER_BYTES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSchema:
    """A tool's input schema as JSON bytes, and what was loosened to list it."""

    text: bytes
    losses: tuple[str, ...] = ()


def compose_input(arguments: Sequence[Argument], components: Components) -> InputSchema:
    """Compose the input schema of a tool with these arguments.

    Raises:
        Unusable: a schema is outside the document, or the arguments are too many or make no valid schema.
    """
    needed = closure(arguments, components)
    for part in parts(arguments, needed):
        if part.external is not None:
            raise Unusable(part.external)
    losses = dict.fromkeys(loss for part in parts(arguments, needed) for loss in part.losses)
    fitting, too_large = _loosen_largest(arguments)
    assembly = assemble(fitting, closure(fitting, components) if too_large else needed, components)
    broken: tuple[str, ...] = ()
    if not compiles(assembly.schema):
        whole, broken = _loosen_broken(fitting, components)
        assembly = assemble(whole, closure(whole, components), components)
        if not compiles(assembly.schema):
            raise Unusable("its arguments make no valid schema")
    return InputSchema(text=assembly.text, losses=(*losses, *too_large, *broken, *assembly.losses))


def _loosen_largest(arguments: Sequence[Argument]) -> tuple[Sequence[Argument], tuple[str, ...]]:
    """Makes the largest arguments accept any value, until all arguments fit half of `LARGEST` and `MOST_SCHEMAS`."""
    weighed = [(len(orjson.dumps(argument.translated.schema)), argument) for argument in arguments]
    length = sum(size + len(argument.name) * 2 + _MEMBER_BYTES for size, argument in weighed)
    count = sum(argument.translated.count for argument in arguments)
    loosened: set[str] = set()
    for size, argument in sorted(weighed, key=lambda pair: -pair[0]):
        if length <= _OWN_SHARE and count <= MOST_SCHEMAS:
            break
        loosened.add(argument.name)
        length -= size
        count -= argument.translated.count
    if length > LARGEST:
        raise Unusable("it has more arguments than a tool can have")
    return _loosen(arguments, loosened, "is larger than a listed schema may be")


def _loosen_broken(arguments: Sequence[Argument], components: Components) -> tuple[Sequence[Argument], tuple[str, ...]]:
    broken = {argument.name for argument in arguments if not _is_sound(argument, components)}
    return _loosen(arguments, broken, "has a schema that cannot be checked")


def _is_sound(argument: Argument, components: Components) -> bool:
    return compiles(assemble([argument], closure([argument], components), components).schema)


def _loosen(arguments: Sequence[Argument], names: set[str], why: str) -> tuple[Sequence[Argument], tuple[str, ...]]:
    if not names:
        return arguments, ()
    kept = [replace(item, translated=_ANYTHING) if item.name in names else item for item in arguments]
    return kept, tuple(f"argument '{item.name}' {why}; anything is accepted" for item in kept if item.name in names)
