"""Explanations of single violations: messages without truncated values, and for a choice its nearest branch.

The nearest branch of `anyOf` or `oneOf` accepts the type and the constants of the value, and has the fewest violations.
Its first three violations are listed. At most 200 branches and 20 violations of each are compared.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gateway.definitions.json_schema.limits import (
    MAX_BRANCHES,
    MAX_COMPARED,
    MAX_EXPLAINED_DEPTH,
    MAX_LISTED_VALUES,
    MAX_OF_BRANCH,
    MAX_REASON_LENGTH,
    MAX_SHOWN_NAME_LENGTH,
)
from gateway.definitions.json_schema.metered_schema import unmetered
from gateway.domain.json_access import as_list, as_object, point
from gateway.errors import Fault

_VALUES_LENGTH = 200
_CHOICES = frozenset(("anyOf", "oneOf"))
_CONSTANT_KEYWORDS = frozenset(("const", "enum"))
_SHORT_REASONS: Mapping[str, str] = {
    "type": "is not of type {}",
    "enum": "is not one of {}",
    "const": "is not {}",
    "format": "is not a {}",
    "pattern": "does not match {}",
    "minLength": "is shorter than {} characters",
    "maxLength": "is longer than {} characters",
    "minItems": "has less than {} items",
    "maxItems": "has more than {} items",
    "minProperties": "has less than {} properties",
    "maxProperties": "has more than {} properties",
    "minimum": "is less than the minimum of {}",
    "maximum": "is greater than the maximum of {}",
    "exclusiveMinimum": "is less than or equal to the minimum of {}",
    "exclusiveMaximum": "is greater than or equal to the maximum of {}",
    "multipleOf": "is not a multiple of {}",
    "required": "lacks the required property {}",
    "uniqueItems": "has non-unique elements",
    "contains": "has no element that is valid under `contains`",
    "not": "is valid under the schema of `not`",
    "falseSchema": "is not allowed",
    "additionalProperties": "has properties that are not allowed: {}",
    "unevaluatedProperties": "has properties that are not allowed: {}",
    "anyOf": "is not valid under any of the schemas listed in the 'anyOf' keyword",
    "oneOf": "is not valid under exactly one of the schemas listed in the 'oneOf' keyword",
}
"""Reasons that replace a message with a long value; the argument is the value of the keyword."""


def explain(error: Any, schema: object, *, at: Sequence[str] = (), depth: int = 0) -> Iterator[Fault]:
    """Yield the faults of one violation of the schema; `at` is the position of the schema's value."""
    where = point(*at, *error.instance_path)
    if error.kind.name not in _CHOICES or depth >= MAX_EXPLAINED_DEPTH:
        yield Fault(pointer=where, reason=_reason(error))
        return
    branches = [list(branch[:MAX_COMPARED]) for branch in error.kind.context[:MAX_BRANCHES]]
    if not all(branches):  # more than one branch of `oneOf` accepts the value
        yield Fault(pointer=where, reason=_reason(error))
        return
    fixed = _fixed_faults(error, branches, at)
    if fixed is not None:
        yield fixed
        return
    number = min(range(len(branches)), key=lambda number: _distance(branches[number], error))
    name = _name_of_branch(error, schema, number)
    yield Fault(pointer=where, reason=f"{_SHORT_REASONS[error.kind.name]}; the nearest is {name}")
    found = [fault for inner in branches[number] for fault in explain(inner, schema, at=at, depth=depth + 1)]
    yield from (
        Fault(pointer=fault.pointer, reason=f"{fault.reason} ({name})" if depth == 0 else fault.reason)
        for fault in found[:MAX_OF_BRANCH]
    )


def _distance(branch: Sequence[Any], choice: Any) -> tuple[bool, bool, int]:
    """Sort key of a branch: those of the value's type first, then those with its constant, then by violations."""
    depth = len(choice.instance_path)
    depths = [(error.kind.name, len(error.instance_path) - depth) for error in branch]
    is_of_other_type = any(name == "type" and below == 0 for name, below in depths)
    is_of_other_kind = any(name in _CONSTANT_KEYWORDS and below <= 1 for name, below in depths)
    return is_of_other_type, is_of_other_kind, len(branch)


def _fixed_faults(choice: Any, branches: Sequence[Sequence[Any]], at: Sequence[str]) -> Fault | None:
    """The fault of a property whose value is a constant of no branch, such as that of a discriminator."""
    depth = len(choice.instance_path) + 1
    wanted: dict[str, None] = {}
    path: list[str | int] | None = None
    for branch in branches:
        found = next(
            (error for error in branch if error.kind.name in _CONSTANT_KEYWORDS and len(error.instance_path) == depth),
            None,
        )
        if found is None or (path is not None and found.instance_path != path):
            return None
        path = found.instance_path
        values = as_list(found.kind.value) if found.kind.name == "enum" else (found.kind.value,)
        wanted.update(dict.fromkeys(_json(value) for value in values or ()))
    if path is None:
        return None
    reason = f"must be one of {_listed(wanted)}"
    if len(reason) > MAX_REASON_LENGTH:
        reason = f"must be one of {len(wanted)} values that the schema names"
    return Fault(pointer=point(*at, *path), reason=reason)


def one_of(values: Iterable[object]) -> str:
    """Return the values as JSON: as many as a reason has room for, and the number of the others."""
    return _listed(dict.fromkeys(_json(value) for value in values))


def _listed(texts: Collection[str]) -> str:
    shown: list[str] = []
    room = _VALUES_LENGTH
    for text in texts:
        room -= len(text) + 2
        if len(shown) == MAX_LISTED_VALUES or (room < 0 and shown):
            break
        shown.append(text)
    more = len(texts) - len(shown)
    return ", ".join(shown) + (f" or {more} other{'s' if more > 1 else ''}" if more else "")


def branch_name(branch: Mapping[str, object], number: int, count: int) -> str:
    """Return the name of the schema that a branch references, its title, or its number."""
    ref, title = branch.get("$ref"), branch.get("title")
    named = ref.rpartition("/")[2] if isinstance(ref, str) else title
    if isinstance(named, str) and named:
        return f"'{named[:MAX_SHOWN_NAME_LENGTH]}'"
    return f"branch {number + 1} of {count}"


def _name_of_branch(choice: Any, schema: object, number: int) -> str:
    for token in choice.schema_path:
        items = as_list(schema)
        schema = items[token] if items is not None and isinstance(token, int) else (as_object(schema) or {}).get(token)
    branches = as_list(schema) or ()
    branch = unmetered((as_object(branches[number]) if number < len(branches) else None) or {})
    return branch_name(branch, number, len(choice.kind.context))


def _reason(error: Any) -> str:
    """The message of the validator; a long message without the value at its beginning."""
    message = str(error.message)
    if len(message) <= MAX_REASON_LENGTH:
        return message
    name = error.kind.name
    short = f"does not satisfy `{name}`"
    words = _SHORT_REASONS.get(name, short)
    limit = one_of(as_list(error.kind.value) or (error.kind.value,))
    reason = f"the value {words.format(limit)}"
    return reason if len(reason) <= MAX_REASON_LENGTH else f"the value {short}"


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError):
        return "what the schema has"
