"""Checks of values against listed schemas, with the validator settings for calls.

Validators of small schemas are cached, because many schemas of a document differ only in their texts.
"""

from typing import Any

import jsonschema_rs
import orjson

from gateway.domain.json_access import Object
from gateway.openapi.schema.definition_names import referenced_names
from gateway.openapi.schema.limits import MAX_CACHED_VALIDATORS, MAX_CHECKED_BYTES, MAX_DEFAULT_BYTES

TEXTS = frozenset(("title", "description", "default", "deprecated", "examples"))
"""Keywords that restrict no value."""
_SETTLED = TEXTS | {"type", "enum"}
"""Keywords for which a translation checks a default."""
_OPTIONS = jsonschema_rs.RegexOptions()


class ValueChecks:
    """The validators of one document's small schemas."""

    def __init__(self) -> None:
        self._validators: dict[bytes, Any] = {}
        self._bytes = MAX_DEFAULT_BYTES

    def validator(self, node: Object) -> Any:
        """Return the validator of a schema that references none; None if it does not compile."""
        schema = {key: part for key, part in node.items() if key not in TEXTS}
        try:
            key = orjson.dumps(schema)
        except TypeError:  # an integer beyond 64 bits
            return compile_schema(schema)
        if key not in self._validators:
            if len(self._validators) >= MAX_CACHED_VALIDATORS:
                self._validators.clear()
            self._validators[key] = compile_schema(schema)
        return self._validators[key]

    def affords(self, node: Object, shared_bytes: int = 0) -> bool:
        """True if a check of the schema's default stays within the limits, which it is charged to."""
        try:
            size = len(orjson.dumps(node)) + shared_bytes
        except TypeError:  # an integer beyond 64 bits
            return False
        self._bytes -= size
        return size <= MAX_CHECKED_BYTES and self._bytes >= 0  # guard: default-checks-bounded

    def accepts_default(self, node: Object, *, allows_null: bool) -> bool:
        """False if the default of a translated schema violates the schema; referenced schemas accept any value.

        With `allows_null`, the caller adds null to the types of the schema.
        """
        if node.keys() <= _SETTLED or (allows_null and node["default"] is None):
            return True
        if not self.affords(node):
            return True
        definitions = dict.fromkeys(referenced_names(node), True)
        check = self.validator({**node, "$defs": definitions} if definitions else node)
        return check is None or bool(check.is_valid(node["default"]))


def compile_schema(schema: Object) -> Any:
    """Return the validator of a schema; None if it does not compile."""
    try:
        return jsonschema_rs.Draft202012Validator(
            {key: part for key, part in schema.items() if key != "examples"},
            validate_formats=True,
            offline=True,
            pattern_options=_OPTIONS,
        )
    except (ValueError, jsonschema_rs.ReferencingError):
        return None
