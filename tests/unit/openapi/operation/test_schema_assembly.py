"""Assembled schemas: a shared schema is compiled once, and a broken one is found each time."""

from typing import Any

import pytest

from gateway.openapi.document.references import References
from gateway.openapi.operation.schema_assembly import compiles, compiles_once
from gateway.openapi.schema.components import Components
from gateway.openapi.schema.discriminators import Discriminators
from gateway.openapi.schema.patterns import Patterns
from gateway.openapi.schema.translation import SchemaDialect
from gateway.openapi.warnings import Warnings

_A: dict[str, Any] = {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}}
_BROKEN = {"pattern": "("}


@pytest.fixture
def components() -> Components:
    """Shared schemas of an empty document."""
    references = References({})
    return Components(
        SchemaDialect(
            references=references,
            warnings=Warnings(),
            patterns=Patterns(),
            subtypes=Discriminators({}, references),
            has_siblings=True,
        )
    )


def _input(**definitions: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/A"}}, "$defs": definitions}


def test_a_broken_schema_behind_a_known_one_is_found(components: Components) -> None:
    """Ours: a schema that only a compiled schema refers to is compiled too."""
    assert compiles_once(_input(A=_A, B={}), components)
    assert components.compiled == {"A"}
    broken = _input(A=_A, B=_BROKEN)
    assert not compiles(broken)
    assert not compiles_once(broken, components)
    assert components.compiled == {"A"}


def test_a_schema_after_its_stub_is_compiled(components: Components) -> None:
    """Ours: a schema that was left out once is compiled when it is listed."""
    assert compiles_once(_input(A={}), components)
    assert not compiles_once(_input(A=_BROKEN), components)
    assert compiles_once(_input(A={"type": "string"}), components)
