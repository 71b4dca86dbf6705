"""Acceptance checks of tenants' JSON Schemas: a known dialect, no external references, bounded work."""

import re
from collections.abc import Mapping

import jsonschema_rs
import orjson

from gateway.definitions.excerpts import quote
from gateway.definitions.field_reader import Faults
from gateway.definitions.json_schema.dialects import DIALECTS, compile_schema, find_dialect
from gateway.definitions.json_schema.limits import (
    MAX_CHECKS,
    MAX_ENUM_VALUES,
    MAX_PATTERN_LENGTH,
    MAX_PATTERNS,
    MAX_SCHEMA_BYTES,
)
from gateway.definitions.json_schema.recursion_costs import applies_to_itself, max_checks
from gateway.definitions.json_schema.tree import SchemaNode, SchemaTree, TooLarge
from gateway.definitions.limits import MAX_COMPILED_PATTERN_BYTES
from gateway.domain.json_access import as_list, as_object, point

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s#]*")


def check_schema(schema: Mapping[str, object], where: str, faults: Faults) -> SchemaTree | None:
    """Add a fault for each unusable part of the schema. Return the schema's tree; None if the schema is too large."""
    size = len(orjson.dumps(schema))
    if size > MAX_SCHEMA_BYTES:
        faults.add(where, f"has {size} bytes of JSON (limit {MAX_SCHEMA_BYTES})")
        return None
    try:
        tree = SchemaTree(schema)
    except TooLarge as wrong:
        faults.add(where + point(*wrong.path), wrong.reason)
        return None
    checker = _Checker(tree, where, faults)
    checker.check()
    if checker.is_sound:
        _check_costs(tree, where, faults)
        _compile(schema, where, faults)
    return tree


def check_root(schema: Mapping[str, object], where: str, faults: Faults) -> None:
    """Add faults unless the input schema has `type: object` and `properties`."""
    if "type" not in schema:
        faults.add(where + "/type", "is missing; it must be 'object'")
    elif schema["type"] != "object":
        faults.add(where + "/type", "must be 'object'")
    if "properties" not in schema:
        faults.add(where + "/properties", "is missing; for a tool without arguments use an empty object")
    elif as_object(schema["properties"]) is None:
        faults.add(where + "/properties", "must be an object")


class _Checker:
    """Checks every subschema of a tree."""

    def __init__(self, tree: SchemaTree, where: str, faults: Faults) -> None:
        self._tree = tree
        self._where = where
        self._faults = faults
        self._dialect = tree.nodes[0].schema.get("$schema")
        self._patterns: set[str] = set()
        self.is_sound = True

    def check(self) -> None:
        for node in self._tree.nodes:
            self._identity(node)
            self._values(node)
            self._check_patterns(node)
        for path, ref in self._tree.unresolved:
            is_ours = ref.startswith("#")
            self._refuse(
                path,
                f"{quote(ref)} has no target in this schema"
                if is_ours
                else f"{quote(ref)} is external; only references that begin with '#' are resolved",
            )

    def _refuse(self, path: tuple[str | int, ...], reason: str) -> None:
        self.is_sound = False
        self._faults.add(self._where + point(*path), reason)

    def _identity(self, node: SchemaNode) -> None:
        dialect = node.schema.get("$schema")
        if dialect is not None:
            known = ", ".join(one.name for one in DIALECTS)
            if not isinstance(dialect, str) or find_dialect(dialect) is None:
                self._refuse(
                    (*node.path, "$schema"), f"{quote(dialect)} is not a supported dialect; supported: {known}"
                )
            elif node.path and dialect != self._dialect:
                self._refuse((*node.path, "$schema"), "differs from the dialect of the whole schema")
        name = node.schema.get("$id")
        if name is None:
            return
        if node.path and not (isinstance(name, str) and name.startswith("#")):
            self._refuse((*node.path, "$id"), "is allowed only at the root; use '$anchor' to name a subschema")
        elif not node.path and not (isinstance(name, str) and _IDENTIFIER.fullmatch(name)):
            self._refuse(("$id",), "must be an absolute URI without fragment")

    def _values(self, node: SchemaNode) -> None:
        values = as_list(node.schema.get("enum")) or ()
        if len(values) > MAX_ENUM_VALUES:
            self._refuse((*node.path, "enum"), f"has more than {MAX_ENUM_VALUES} values")

    def _check_patterns(self, node: SchemaNode) -> None:
        pattern = node.schema.get("pattern")
        found = [((*node.path, "pattern"), pattern)] if isinstance(pattern, str) else []
        named = as_object(node.schema.get("patternProperties")) or {}
        found += [((*node.path, "patternProperties", name), name) for name in named]
        for path, text in found:
            if text in self._patterns:
                continue
            self._patterns.add(text)
            if len(self._patterns) > MAX_PATTERNS:
                self._refuse(path, f"is one of more than {MAX_PATTERNS} patterns")
                return
            if len(text) > MAX_PATTERN_LENGTH or not _is_linear(text):
                self._refuse(
                    path,
                    f"is not a pattern that can be checked in linear time and little memory (no look-around, no"
                    f" back-references, at most {MAX_PATTERN_LENGTH} characters)",
                )


def _is_linear(pattern: str) -> bool:
    options = jsonschema_rs.RegexOptions(size_limit=MAX_COMPILED_PATTERN_BYTES)
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, offline=True, pattern_options=options)
    except ValueError:
        return False
    return True


def _check_costs(tree: SchemaTree, where: str, faults: Faults) -> None:
    endless = applies_to_itself(tree)
    if endless is not None:
        faults.add(where + point(*endless.path), "applies to itself at the same value in an infinite loop")
    elif max_checks(tree) > MAX_CHECKS:
        faults.add(where, f"more than {MAX_CHECKS} schemas can apply to one part of a value")


def _compile(schema: Mapping[str, object], where: str, faults: Faults) -> None:
    try:
        compile_schema(schema)
    except jsonschema_rs.ValidationError as wrong:
        faults.add(where + point(*wrong.instance_path), f"is not valid JSON Schema: {wrong.message[:200]}")
    except (ValueError, jsonschema_rs.ReferencingError) as wrong:
        faults.add(where, f"is not valid JSON Schema: {str(wrong)[:200]}")
