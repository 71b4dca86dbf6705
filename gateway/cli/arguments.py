"""Tool arguments on the command line: `name=value`, parsed as JSON where the tool's schema allows that type."""

from collections.abc import Sequence

from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, is_object, pick, read_json, to_list, to_object, to_objects
from gateway.cli.limits import MAX_SCHEMA_DEPTH
from gateway.domain.json_access import tokens_of

_ALL_KINDS = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})


def parse_arguments(given: Sequence[str], *, whole: str | None, schema: object) -> JsonObject:
    """Parse the arguments of a call: the object of `--args`, then each `name=value`.

    Raises:
        Failure: an argument has another form or is given twice, or `--args` is not a JSON object.
    """
    arguments = _parse_object(whole)
    for text in given:
        name, equals, raw = text.partition("=")
        if not equals or not name:
            raise Failure(f"{text!r} is not an argument; use NAME=VALUE", ExitCode.USAGE)
        if name in arguments:
            raise Failure(f"argument {name!r} is given twice", ExitCode.USAGE)
        arguments[name] = parse_value(raw, pick(schema, "properties", name), root=schema)
    return arguments


def parse_value(raw: str, schema: object, *, root: object) -> object:
    """Parse the text as JSON if the value has a type that the schema allows; otherwise return the text itself."""
    try:
        value = read_json(raw)
    except ValueError:
        return raw
    return value if kinds_of(value) & allowed_kinds(schema, root=root) else raw


def kinds_of(value: object) -> frozenset[str]:
    """Return the JSON Schema types of a value."""
    match value:
        case None:
            return frozenset({"null"})
        case bool():
            return frozenset({"boolean"})
        case int():
            return frozenset({"integer", "number"})
        case float():
            return frozenset({"integer", "number"} if value.is_integer() else {"number"})
        case str():
            return frozenset({"string"})
        case list():
            return frozenset({"array"})
        case _:
            return frozenset({"object"})


def allowed_kinds(schema: object, *, root: object, depth: int = 0) -> frozenset[str]:
    """Return the JSON types that a schema allows; all types if its keywords do not restrict them."""
    if depth > MAX_SCHEMA_DEPTH:
        return _ALL_KINDS
    target = _resolve_reference(schema, root)
    kinds = _declared_kinds(target)
    for keyword in ("anyOf", "oneOf"):
        if branches := to_list(target.get(keyword)):
            either = [allowed_kinds(branch, root=root, depth=depth + 1) for branch in branches]
            kinds &= frozenset[str]().union(*either)
    for branch in to_objects(target.get("allOf")):
        kinds &= allowed_kinds(branch, root=root, depth=depth + 1)
    return kinds


def _declared_kinds(schema: JsonObject) -> frozenset[str]:
    named = schema.get("type")
    if named is not None:
        return frozenset(kind for kind in (to_list(named) or [named]) if isinstance(kind, str))
    if "const" in schema or "enum" in schema:
        values = [schema["const"]] if "const" in schema else to_list(schema.get("enum"))
        return frozenset[str]().union(*(kinds_of(value) for value in values))
    return _ALL_KINDS


def _resolve_reference(schema: object, root: object) -> JsonObject:
    target = to_object(schema)
    for _ in range(MAX_SCHEMA_DEPTH):
        reference = target.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        steps = tokens_of(reference[1:])
        target = to_object(pick(root, *steps))
    return target


def _parse_object(whole: str | None) -> JsonObject:
    if whole is None:
        return {}
    try:
        value = read_json(whole)
    except ValueError as error:
        raise Failure(f"--args is not valid JSON: {error}", ExitCode.USAGE) from None
    if not is_object(value):
        raise Failure("--args must be a JSON object", ExitCode.USAGE)
    return value
