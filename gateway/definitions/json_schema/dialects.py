"""Supported dialects of JSON Schema and their compilers. References are not fetched; patterns run in linear time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import jsonschema_rs

from gateway.domain.json_access import point

_WHOLE = "urn:gateway:schema"


@dataclass(frozen=True, slots=True)
class Dialect:
    """One dialect: its name, its identifier in `$schema`, and its compiler."""

    name: str
    uri: str
    draft: int
    validator: Any

    def compile(
        self,
        schema: Mapping[str, object],
        *,
        registry: jsonschema_rs.Registry | None = None,
        keywords: dict[str, type] | None = None,
        asserts_formats: bool = True,
    ) -> Any:
        """Compile a schema, with further keywords if given. No reference is fetched.

        Raises:
            ValueError: the schema is not valid in this dialect.
        """
        return self.validator(
            dict(schema),
            validate_formats=asserts_formats,
            offline=True,  # guard: schema-offline
            pattern_options=jsonschema_rs.RegexOptions(),  # guard: pattern-engine
            registry=registry,
            keywords=keywords,
        )


DEFAULT = Dialect(
    "2020-12",
    "https://json-schema.org/draft/2020-12/schema",
    jsonschema_rs.Draft202012,
    jsonschema_rs.Draft202012Validator,
)
DIALECTS = (
    DEFAULT,
    Dialect(
        "2019-09",
        "https://json-schema.org/draft/2019-09/schema",
        jsonschema_rs.Draft201909,
        jsonschema_rs.Draft201909Validator,
    ),
    Dialect("draft-07", "http://json-schema.org/draft-07/schema", jsonschema_rs.Draft7, jsonschema_rs.Draft7Validator),
)


def find_dialect(uri: str) -> Dialect | None:
    """Return the dialect with this identifier, or None. The scheme and an empty fragment are ignored."""
    plain = uri.removesuffix("#").removeprefix("https://").removeprefix("http://")
    return next((dialect for dialect in DIALECTS if dialect.uri.partition("://")[2] == plain), None)


def dialect_of(schema: Mapping[str, object]) -> Dialect:
    """Return the dialect that a schema names; 2020-12 if it names no known one."""
    named = schema.get("$schema")
    return (find_dialect(named) if isinstance(named, str) else None) or DEFAULT


def compile_argument(
    schema: Mapping[str, object],
    name: str,
    *,
    inside: Sequence[str] = (),
    keywords: dict[str, type] | None = None,
    asserts_formats: bool = True,
) -> Any:
    """Compile the part of a schema for one of its properties; it takes up to milliseconds for a large schema.

    `inside` leads to the subschema with `properties`.
    """
    dialect = dialect_of(schema)
    registry = jsonschema_rs.Registry([(_WHOLE, dict(schema))], draft=dialect.draft)
    pointer = quote(point(*inside, "properties", name))
    return dialect.compile(
        {"$ref": f"{_WHOLE}#{pointer}"}, registry=registry, keywords=keywords, asserts_formats=asserts_formats
    )


def compile_schema(schema: Mapping[str, object], *, asserts_formats: bool = True) -> Any:
    """Compile a schema in its own dialect.

    Raises:
        ValueError: the schema is not valid in its dialect.
    """
    return dialect_of(schema).compile(schema, asserts_formats=asserts_formats)
