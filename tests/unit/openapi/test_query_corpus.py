"""Answers of the query tools for every real document, compared with an independent computation."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, cast

import jsonschema_rs
import msgspec
import pytest

from gateway.openapi.document.document import read_tree
from gateway.openapi.query.api import ApiView
from gateway.openapi.query.limits import MAX_ANSWER_BYTES, MAX_PAGE_BYTES
from gateway.openapi.query.references import Resolver
from gateway.openapi.query.tools import DEFINITIONS
from gateway.openapi.query.truncation import render
from tests.support.queries import Graph, Reader, ask, view_of_compiled
from tests.support.real_documents import RealDocument

VALIDATORS = {
    name: jsonschema_rs.validator_for(schema)
    for name, text in DEFINITIONS.items()
    if (schema := msgspec.json.decode(text).get("outputSchema")) is not None
}
SAMPLED = 25
_Item = TypeVar("_Item")


@pytest.fixture(scope="session")
def seen(real_document: RealDocument) -> ApiView:
    """The document as one sees it who sees everything."""
    return view_of_compiled(real_document.compilation)


@pytest.fixture(scope="session")
def known(real_document: RealDocument) -> Graph:
    """References of the document, computed without shortcuts."""
    return Graph(cast("dict[str, Any]", read_tree(real_document.raw)))


def sample(items: Sequence[_Item], wanted: int = SAMPLED) -> Sequence[_Item]:
    """All of them, or that many from all over."""
    return items[:: max(1, len(items) // wanted)]


def questions(seen: ApiView) -> Iterator[tuple[str, dict[str, Any]]]:
    """One of each kind about the document, and about as many endpoints and schemas as a test has time for."""
    yield "get_api_info", {}
    for arguments in ({}, {"limit": 500}, {"limit": 3, "offset": 2}, {"method": "get"}, {"tag": "nobody"}):
        yield "list_endpoints", arguments
    for query in ("list user", "GET", "zzz", "😀 §"):
        yield "search_endpoints", {"query": query}
    yield "list_schemas", {}
    yield "list_schemas", {"limit": 500}
    for number, endpoint in enumerate(sample(seen.endpoints)):
        more = ({}, {"depth": 1}, {"resolve": True})[0 if number % 10 else 1 + number // 10 % 2]
        yield "get_endpoint_details", {"path": endpoint.path, "method": endpoint.method.lower(), **more}
    for number, schema in enumerate(sample(seen.schemas)):
        more = ({}, {"depth": 2}, {"resolve": True})[0 if number % 10 else 1 + number // 10 % 2]
        yield "get_schema_details", {"name": schema.name, **more}


def test_every_answer_is_as_declared_and_bounded(seen: ApiView) -> None:
    """Ours: structured content fits the listed output schema, whatever the document; 32 KB, a page 256 KB (OAS-5)."""
    for tool, arguments in questions(seen):
        answer = ask(tool, seen, **arguments)
        assert VALIDATORS[tool].is_valid(answer), (tool, arguments)
        limit = MAX_PAGE_BYTES + 1024 if tool.startswith(("list", "search")) else MAX_ANSWER_BYTES
        assert len(render(answer).encode()) <= limit, (tool, arguments)


def test_dependencies_equal_the_references_of_the_document(seen: ApiView, known: Graph) -> None:
    """Ours: `dependencies` and `usedBy` are those that following every reference gives, all of them (OAS-5)."""
    names = {schema.name for schema in seen.schemas}
    assert names == set(known.direct)
    reached = {schema: known.reached({schema}) & names for schema in names}
    calling = known.operations()
    for schema in sample(sorted(names)):
        reader = Reader(seen, "get_schema_details", name=schema)
        dependencies, used_by = reader.part("/dependencies"), reader.part("/usedBy")
        users = sorted(other for other in names if schema in reached[other])
        callers = {key for key, uses in calling.items() if schema in uses or not uses.isdisjoint(users)}

        assert dependencies == sorted(reached[schema]), schema
        assert used_by[: len(users)] == users, schema
        assert set(used_by[len(users) :]) == callers, schema


def test_parameters_of_paths_are_there(seen: ApiView, known: Graph) -> None:
    """OpenAPI: parameters of a path hold for its operations, unless these override them."""
    for endpoint in sample(seen.endpoints):
        reader = Reader(seen, "get_endpoint_details", path=endpoint.path, method=endpoint.method)
        has_body = "requestBody" in msgspec.json.decode(endpoint.details)
        declared = known.parameters(endpoint.method, endpoint.path)
        changed = {item for item in declared if item[1] in {"body", "formData"}}  # those of 2.0 that are the body now
        shown = reader.part("/parameters") if declared and declared != changed else ()
        kept = {(item["name"], item["in"]) for item in shown}

        assert kept == declared - changed, endpoint.identity
        assert bool(changed) <= has_body, endpoint.identity


def test_cut_answers_can_be_joined_again(seen: ApiView) -> None:
    """Ours: following every pointer gives the whole of it, byte for byte, and no answer is too large (OAS-5)."""
    for schema in sorted(seen.schemas, key=lambda entry: -len(bytes(entry.schema)))[:3]:
        for depth in (0, 1):
            reader = Reader(seen, "get_schema_details", name=schema.name, depth=depth)
            raw = msgspec.json.decode(schema.schema)
            whole = Resolver(seen.api.outline).resolve(raw, depth, within=schema.name)

            assert reader.read()["schema"] == whole, schema.name
            assert reader.largest <= MAX_ANSWER_BYTES
    for endpoint in sorted(seen.endpoints, key=lambda entry: -len(bytes(entry.details)))[:3]:
        reader = Reader(seen, "get_endpoint_details", path=endpoint.path, method=endpoint.method)
        details, tool = reader.read(), seen.tools[endpoint.identity]

        assert details["inputSchema"] == msgspec.json.decode(tool.definition)["inputSchema"], endpoint.identity
        assert set(details["responses"]) == set(msgspec.json.decode(endpoint.details)["responses"])
        assert reader.largest <= MAX_ANSWER_BYTES
