"""Random documents through import, listing, validation, explanation, requests, queries and comparison."""

import contextlib
from random import Random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.definitions.json_schema.validator import DeferredCheck, compile_input, compile_output
from gateway.domain.sources import CompiledOperation
from gateway.domain.updates.import_reports import Status
from gateway.errors import ArgumentsInvalid, InvalidDocument, NotYetSupported
from gateway.openapi.compiler import compile_document
from gateway.openapi.options import ImportOptions
from gateway.openapi.query.answers import QueryRefused
from gateway.openapi.review.changes import compare_versions
from gateway.upstream.serialize.request_builder import RequestBuilder
from tests.support.examples import at_least
from tests.support.queries import ask, view_of_compiled
from tests.support.random_documents import RandomDocument
from tests.support.versions import compared

OPTIONS = ImportOptions(outline=True, output_schemas=True)


@settings(max_examples=at_least(150))
@given(seed=st.integers(0, 2**40))
def test_no_schema_in_any_form_makes_an_internal_error(seed: int) -> None:
    """Ours: a keyword in any form of any version costs a warning or one operation, and no call (OAS-3, OAS-4)."""
    chance = Random(seed)
    document = RandomDocument(chance)
    try:
        compilation = compile_document(document.root, OPTIONS)
    except InvalidDocument:
        return
    report = compilation.report
    assert sum(report.count(status) for status in Status) == len(report.operations) == 2
    for made in compilation.operations:
        _call(made, document, chance)
    other = compile_document(RandomDocument(chance).root, OPTIONS)
    compare_versions(compared(compilation), other)
    compare_versions(compared(other), compilation)
    view = view_of_compiled(compilation)
    ask("list_endpoints", view)
    for name in ("a", "op0", "op1"):
        with contextlib.suppress(QueryRefused):  # a document without that operation
            ask("get_schema_details" if name == "a" else "get_endpoint_details", view, name=name, operationId=name)


def _call(made: CompiledOperation, document: RandomDocument, chance: Random) -> None:
    full = made.definition if made.input_schema is None else b'{"inputSchema":' + made.input_schema + b"}"
    schema: dict[str, Any] = msgspec.json.decode(full)["inputSchema"]
    validator = compile_input(full)
    for _ in range(3):
        arguments = {name: document.schemas.value() for name in schema["properties"] if chance.random() < 0.8}
        found = validator.check(arguments)
        if isinstance(found, DeferredCheck):
            found = validator.check_unbounded(arguments, msgspec.json.encode(arguments))
        assert all(fault.reason for fault in found)
        if not found:
            _build(made, arguments)
    if "outputSchema" in msgspec.json.decode(made.definition):
        compile_output(made.definition).check(document.schemas.value())


def _build(made: CompiledOperation, arguments: dict[str, Any]) -> None:
    try:
        request = RequestBuilder(made.plan).build(arguments)
    except (ArgumentsInvalid, NotYetSupported):
        return
    assert request.url.startswith("https://a.example/x")
