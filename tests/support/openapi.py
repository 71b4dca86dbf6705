"""Documents of one operation, and what compiling them gives; for tests of `gateway.openapi`."""

from collections.abc import Mapping
from typing import Any

import jsonschema_rs
import orjson

from gateway.domain.sources import Compilation, CompiledOperation
from gateway.domain.updates.import_reports import OperationReport
from gateway.openapi.compiler import compile_document
from gateway.openapi.options import ImportOptions

SERVER = "https://api.example.com"


def document(paths: Mapping[str, Any], *, version: str = "3.1.0", **more: Any) -> dict[str, Any]:
    """An OpenAPI 3 document with these paths."""
    return {
        "openapi": version,
        "info": {"title": "T", "version": "1"},
        "servers": [{"url": SERVER}],
        "paths": paths,
        **more,
    }


def operation(node: Mapping[str, Any], *, path: str = "/x", method: str = "get", **more: Any) -> dict[str, Any]:
    """A document with one operation."""
    return document({path: {method: {"operationId": "op", **node}}}, **more)


def with_body(schema: Any, *, media_type: str = "application/json", **more: Any) -> dict[str, Any]:
    """A document with one operation that takes a required body of this schema."""
    content = {media_type: {"schema": schema}}
    return operation({"requestBody": {"required": True, "content": content}}, method="post", **more)


def with_parameter(parameter: Mapping[str, Any], *, path: str = "/x", **more: Any) -> dict[str, Any]:
    """A document with one operation that has this one parameter."""
    return operation({"parameters": [parameter]}, path=path, **more)


def compile_it(raw: Mapping[str, Any], **options: Any) -> Compilation:
    """The compilation of a parsed document."""
    return compile_document(raw, ImportOptions(**options))


def only(raw: Mapping[str, Any], **options: Any) -> CompiledOperation:
    """The one tool that the document gives."""
    (made,) = compile_it(raw, **options).operations
    return made


def fate(raw: Mapping[str, Any], **options: Any) -> OperationReport:
    """Result of the import for the one operation of the document."""
    (report,) = compile_it(raw, **options).report.operations
    return report


def definition_of(made: CompiledOperation) -> dict[str, Any]:
    """The tool as a client reads it."""
    listed: dict[str, Any] = orjson.loads(made.definition)
    return listed


def input_of(raw: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """The input schema of the one tool, as calls are validated against it."""
    made = only(raw, **options)
    full: dict[str, Any] = orjson.loads(made.input_schema) if made.input_schema is not None else {}
    return full or definition_of(made)["inputSchema"]


def body_of(schema: Any, **more: Any) -> Any:
    """Listed form of a body schema."""
    return input_of(with_body(schema, **more))["properties"]["body"]


def accepts(schema: dict[str, Any], arguments: object) -> bool:
    """True if a listed schema takes these arguments, checked as calls are."""
    validator = jsonschema_rs.Draft202012Validator(
        schema, validate_formats=True, offline=True, pattern_options=jsonschema_rs.RegexOptions()
    )
    return validator.is_valid(arguments)
