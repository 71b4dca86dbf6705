"""Real documents: every operation accounted for, every listed schema one that clients and calls can use."""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

import jsonschema_rs
import orjson
import pytest

from gateway.domain.sources import Compilation, Status
from gateway.openapi.archive import unpack
from gateway.openapi.assembly import compiles
from gateway.openapi.bundle import bundle
from gateway.openapi.compile import ImportOptions, compile_document
from gateway.upstream.request import RequestBuilder
from tests.support.openapi import definition_of
from tests.support.specs import all_specs, declared_operations, load_spec, specs_dir

NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
OPENAPI_ONLY = frozenset(("nullable", "example", "examples", "discriminator", "xml", "externalDocs", "readOnly"))
MAPS = frozenset(("properties", "patternProperties", "dependentSchemas", "$defs"))
LISTS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
SINGLE = frozenset(("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"))

ARCHIVE = "digitalocean-multifile.tar.gz"
ARCHIVED_OPERATIONS = 659

documents = pytest.mark.parametrize("name", [*all_specs(), ARCHIVE])


def load(name: str) -> bytes:
    """The document; of an archive, the one that its files make."""
    if name != ARCHIVE:
        return load_spec(name)
    made = bundle(unpack((specs_dir() / name).read_bytes()), entry=None)
    assert made.warnings == ()
    return made.document


@cache
def compiled(name: str) -> Compilation:
    return compile_document(load(name), ImportOptions(base_url="https://api.example.com/base"))


def schemas(node: object) -> Iterator[dict[str, Any]]:
    """Every schema inside a schema; property names are none of its keywords."""
    if not isinstance(node, dict):
        return
    schema = cast("dict[str, Any]", node)
    yield schema
    for keyword, value in schema.items():
        if keyword in MAPS:
            for part in value.values():
                yield from schemas(part)
        elif keyword in LISTS:
            for part in value:
                yield from schemas(part)
        elif keyword in SINGLE:
            yield from schemas(value)


@documents
def test_every_operation_is_accounted_for(name: str) -> None:
    """Ours: the report has each operation once, and a tool exactly where it was not skipped."""
    report = compiled(name).report

    assert len(report.operations) == (ARCHIVED_OPERATIONS if name == ARCHIVE else declared_operations(name))
    assert len({(item.method, item.path) for item in report.operations}) == len(report.operations)
    assert sum(report.count(status) for status in Status) == len(report.operations)
    for item in report.operations:
        assert (item.tool is None) == (item.status is Status.SKIPPED)
        assert bool(item.reasons) == (item.status is not Status.OK)
    tools = [item.tool for item in report.operations if item.tool is not None]
    assert tools == [made.tool for made in compiled(name).operations]


@documents
def test_nearly_every_operation_becomes_a_tool(name: str) -> None:
    """Ours: at least 99 of 100 operations are a tool, as it should be or with a reason (OAS-3)."""
    report = compiled(name).report
    counts = {status.value: report.count(status) for status in Status}
    skipped = [(item.path, item.reasons) for item in report.operations if item.status is Status.SKIPPED]

    assert len(skipped) <= max(1, len(report.operations) // 100), f"{name}: {counts}, {skipped}"


@documents
def test_names_are_ones_that_every_client_takes(name: str) -> None:
    """Ours: allowed characters, at most 64 of them, no name twice."""
    names = [made.tool for made in compiled(name).operations]

    assert all(NAME.fullmatch(tool) for tool in names)
    assert len(set(names)) == len(names)


@documents
def test_every_input_schema_compiles_as_calls_compile_it(name: str) -> None:
    """JSON Schema 2020-12: valid, object-rooted, without a reference that leads outside."""
    for made in compiled(name).operations:
        schema = definition_of(made)["inputSchema"]
        jsonschema_rs.Draft202012Validator(
            schema, validate_formats=True, offline=True, pattern_options=jsonschema_rs.RegexOptions()
        )
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert all(NAME.fullmatch(argument) for argument in schema["properties"])
        assert len(orjson.dumps(schema)) <= 256 * 1024


@documents
def test_only_used_definitions_are_listed_and_none_is_missing(name: str) -> None:
    """Ours: `$defs` holds exactly what the schema refers to."""
    for made in compiled(name).operations:
        schema = definition_of(made)["inputSchema"]
        wanted = {part["$ref"].removeprefix("#/$defs/") for part in schemas(schema) if "$ref" in part}
        assert wanted == set(schema.get("$defs", {})), made.identity


@documents
def test_no_keyword_of_openapi_alone_is_listed(name: str) -> None:
    """Ours: listed schemas are JSON Schema; lists always say what their items are."""
    for made in compiled(name).operations:
        for schema in schemas(definition_of(made)["inputSchema"]):
            assert OPENAPI_ONLY.isdisjoint(schema), made.identity
            assert not any(keyword.startswith("x-") for keyword in schema)
            assert not isinstance(schema.get("exclusiveMinimum"), bool)
            assert schema.get("enum") != []
            assert "items" in schema or "array" not in (schema.get("type") or ())


@documents
def test_the_price_of_the_list_is_exact(name: str) -> None:
    """Ours: the reported bytes are those of all tools in one compact list, as they are served (OAS-3)."""
    result = compiled(name)
    tools = [json.loads(made.definition) for made in result.operations]
    listed = json.dumps({"tools": tools}, ensure_ascii=False, separators=(",", ":")).encode()

    assert result.report.tools_list_bytes == len(listed)
    assert len(tools) == len(result.operations)


@documents
def test_every_plan_can_be_sent(name: str) -> None:
    """Ours: what an import accepts, a call can write."""
    for made in compiled(name).operations:
        RequestBuilder(made.plan)


@documents
def test_every_argument_feeds_the_request_and_every_part_has_its_argument(name: str) -> None:
    """Ours: the listed arguments are exactly those of the plan, and required ones stay required."""
    for made in compiled(name).operations:
        schema = definition_of(made)["inputSchema"]
        fed = {item.argument: item.required for item in made.plan.parameters}
        if made.plan.body is not None:
            fed[made.plan.body.argument] = made.plan.body.required
        if made.plan.bodies:
            fed[made.plan.choice] = False
        assert set(schema["properties"]) == set(fed)
        assert set(schema.get("required", ())) == {argument for argument, required in fed.items() if required}


@documents
def test_compiling_twice_gives_the_same(name: str) -> None:
    """Ours: a compilation depends on the document and the options alone."""
    again = compile_document(load(name), ImportOptions(base_url="https://api.example.com/base"))

    assert again == compiled(name)


def test_of_all_documents_together_hardly_an_operation_is_lost() -> None:
    """Ours: 99 of 100 operations of all real documents are tools (OAS-3)."""
    reports = {name: compiled(name).report for name in [*all_specs(), ARCHIVE]}
    figures = {name: {status.value: report.count(status) for status in Status} for name, report in reports.items()}
    total = sum(len(report.operations) for report in reports.values())
    skipped = sum(report.count(Status.SKIPPED) for report in reports.values())

    assert skipped * 1000 <= total, f"{skipped} of {total} are skipped: {figures}"


@pytest.mark.parametrize("name", ["petstore-v3.yaml", "figma-31.yaml", "qdrant.json", "kubernetes-apps-v1.json"])
def test_listed_output_schemas_are_valid_and_of_objects(name: str) -> None:
    """MCP: an output schema is a JSON Schema of an object, complete in itself (TDF-5)."""
    made = compile_document(load(name), ImportOptions(base_url="https://api.example.com", output_schemas=True))
    listed = [schema for item in made.operations if (schema := definition_of(item).get("outputSchema")) is not None]

    assert listed
    for schema in listed:
        assert schema["type"] == "object"
        assert compiles(schema)
        assert all(
            part["$ref"].removeprefix("#/$defs/") in schema["$defs"] for part in schemas(schema) if "$ref" in part
        )


def test_github_keeps_all_its_operations() -> None:
    """Ours: 1,223 operations, each a tool that is as it should be (OAS-3)."""
    report = compiled("github.json").report

    assert report.count(Status.OK) == 1223


def test_an_archive_of_many_files_keeps_its_operations() -> None:
    """Ours: 659 operations from 2,907 files, at least 99 of 100 a tool; no reference is left outside (OAS-3, OAS-7)."""
    report = compile_document(load(ARCHIVE), ImportOptions()).report

    assert len(report.operations) == ARCHIVED_OPERATIONS
    assert report.count(Status.SKIPPED) <= ARCHIVED_OPERATIONS // 100
    assert not any("outside the document" in reason for item in report.operations for reason in item.reasons)


def test_a_known_operation_of_github_is_planned_exactly() -> None:
    """OpenAPI: path, query and body of a real operation."""
    made = next(item for item in compiled("github.json").operations if item.operation_id == "issues/create")

    assert made.tool == "issues_create"
    assert made.plan.path == "/base/repos/{0}/{1}/issues"
    assert [item.argument for item in made.plan.parameters] == ["owner", "repo"]
    assert made.plan.body is not None
    assert made.plan.body.required
    assert "title" in definition_of(made)["inputSchema"]["properties"]["body"]["required"]
