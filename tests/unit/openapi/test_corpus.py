"""Real documents: every operation accounted for, every listed schema one that clients and calls can use."""

import json
import re
from collections.abc import Iterator
from typing import Any, cast

import jsonschema_rs
import orjson
import pytest

from benchmarks.openapi.examples import judge, judge_responses, read_outputs, read_tools
from gateway.domain.listed.definition import listed_definition
from gateway.domain.listed.output_schema import loose_output_schema
from gateway.domain.updates.import_reports import Status
from gateway.openapi.compiler import compile_document
from gateway.openapi.document.document import read_tree
from gateway.openapi.operation.limits import LIST_BYTES, TOOL_BYTES
from gateway.openapi.operation.schema_assembly import compiles
from gateway.openapi.options import ImportOptions
from gateway.openapi.query.tools import DEFINITIONS
from gateway.upstream.serialize.request_builder import RequestBuilder
from tests.support.openapi import definition_of
from tests.support.real_documents import ARCHIVE, OPTIONS, RealDocument
from tests.support.specs import all_specs, declared_operations, load_spec

NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
OPENAPI_ONLY = frozenset(("nullable", "example", "discriminator", "xml", "externalDocs", "readOnly"))
MAPS = frozenset(("properties", "patternProperties", "dependentSchemas", "$defs"))
LISTS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
SINGLE = frozenset(("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"))

ARCHIVED_OPERATIONS = 659

EXAMPLES = {
    "asana.yaml": (1246, 3),
    "digitalocean-multifile.tar.gz": (2300, 0),
    "github.json": (661, 2),
    "meilisearch.yaml": (106, 0),
    "oai-callback-example.yaml": (1, 0),
    "oai-uspto.yaml": (2, 0),
    "openai-31.yaml": (180, 0),
    "petstore-v3.yaml": (16, 0),
    "qdrant.json": (13, 0),
    "sendgrid-v2.json": (109, 0),
    "spotify.yml": (180, 0),
    "square.json": (148, 1),
    "twilio-api-2010.json": (283, 0),
    "twilio-verify.yaml": (51, 0),
}
"""The least examples that the second reading of each document finds, and the most that its listed schemas refuse.

Examples below stubs of shortened schemas are not found.
"""

SKIPPED = {"meilisearch.yaml": 1}
"""Operations that no tool is made of, in documents that have any."""


def only(name: str) -> pytest.MarkDecorator:
    """For a test about one document."""
    return pytest.mark.parametrize("real_document", [name], indirect=True)


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


def test_every_operation_is_accounted_for(real_document: RealDocument) -> None:
    """Ours: the report has each operation once, and a tool where it was not skipped, 999 of 1,000 (OAS-3, OAS-7)."""
    report = real_document.compilation.report

    declared = ARCHIVED_OPERATIONS if real_document.name == ARCHIVE else declared_operations(real_document.name)
    assert len(report.operations) == declared
    assert report.count(Status.SKIPPED) == SKIPPED.get(real_document.name, 0)
    assert len({(item.method, item.path) for item in report.operations}) == len(report.operations)
    assert sum(report.count(status) for status in Status) == len(report.operations)
    for item in report.operations:
        assert (item.tool is None) == (item.status is Status.SKIPPED)
        assert bool(item.reasons) == (item.status is not Status.OK)
        assert not any("outside the document" in reason for reason in item.reasons)
    tools = [item.tool for item in report.operations if item.tool is not None]
    assert tools == [made.tool for made in real_document.compilation.operations]


def test_names_are_ones_that_every_client_takes(real_document: RealDocument) -> None:
    """Ours: allowed characters, at most 64 of them, no name twice."""
    names = [made.tool for made in real_document.compilation.operations]

    assert all(NAME.fullmatch(tool) for tool in names)
    assert len(set(names)) == len(names)


def test_every_input_schema_compiles_as_calls_compile_it(real_document: RealDocument) -> None:
    """JSON Schema 2020-12: valid, object-rooted, without a reference that leads outside."""
    for made in real_document.compilation.operations:
        schema = definition_of(made)["inputSchema"]
        jsonschema_rs.Draft202012Validator(
            schema, validate_formats=True, offline=True, pattern_options=jsonschema_rs.RegexOptions()
        )
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert all(NAME.fullmatch(argument) for argument in schema["properties"])
        assert len(orjson.dumps(schema)) <= 256 * 1024


def test_only_used_definitions_are_listed_and_none_is_missing(real_document: RealDocument) -> None:
    """Ours: `$defs` holds exactly what the schema refers to."""
    for made in real_document.compilation.operations:
        schema = definition_of(made)["inputSchema"]
        wanted = {part["$ref"].removeprefix("#/$defs/") for part in schemas(schema) if "$ref" in part}
        assert wanted == set(schema.get("$defs", {})), made.identity


def test_no_keyword_of_openapi_alone_is_listed(real_document: RealDocument) -> None:
    """Ours: listed schemas are JSON Schema; lists always have a schema of their items."""
    for made in real_document.compilation.operations:
        for schema in schemas(definition_of(made)["inputSchema"]):
            assert OPENAPI_ONLY.isdisjoint(schema), made.identity
            assert not any(keyword.startswith("x-") for keyword in schema)
            assert not isinstance(schema.get("exclusiveMinimum"), bool)
            assert schema.get("enum") != []
            assert "items" in schema or "array" not in (schema.get("type") or ())


def test_the_price_of_the_list_is_exact(real_document: RealDocument) -> None:
    """Ours: the reported bytes are those of all tools in one compact list, as they are served (OAS-3)."""
    result = real_document.compilation
    tools = [json.loads(text) for text in (*(made.definition for made in result.operations), *DEFINITIONS.values())]
    listed = [listed_definition(tool, tool["name"]) for tool in tools]
    served = json.dumps({"tools": listed}, ensure_ascii=False, separators=(",", ":")).encode()

    assert result.report.tools_list_bytes == len(served)
    assert sum(len(made.definition) for made in result.operations) <= LIST_BYTES
    assert all(len(made.definition) <= TOOL_BYTES for made in result.operations)


def test_examples_of_real_documents_are_accepted(real_document: RealDocument) -> None:
    """Ours: a reading apart from the compiler's finds the examples, and listed schemas accept them (OAS-8)."""
    count, refused = EXAMPLES.get(real_document.name, (0, 0))
    root: Any = read_tree(real_document.raw)
    judged = judge(root, read_tools(real_document.compilation))
    report = real_document.compilation.report
    refusing = [note for note in report.notes if "the example at" in note]

    assert judged.count >= count
    assert len(judged.refused) <= refused, judged.refused
    assert report.examples is not None
    assert report.examples.unchecked == 0
    assert (report.examples.accepted > 0) is (count > 0)
    assert bool(refusing) == bool(report.examples.refused)


def test_at_most_one_example_in_a_hundred_is_refused() -> None:
    """Ours: over all real documents, 99 % of the examples are accepted; each document has its own row (OAS-8)."""
    count, refused = (sum(column) for column in zip(*EXAMPLES.values(), strict=True))

    assert EXAMPLES.keys() <= {*all_specs(), ARCHIVE}
    assert refused <= count // 100


def test_every_plan_can_be_sent(real_document: RealDocument) -> None:
    """Ours: a call can write whatever an import accepts."""
    for made in real_document.compilation.operations:
        RequestBuilder(made.plan)


def test_every_argument_feeds_the_request_and_every_part_has_its_argument(real_document: RealDocument) -> None:
    """Ours: the listed arguments are exactly those of the plan, and required ones stay required."""
    for made in real_document.compilation.operations:
        schema = definition_of(made)["inputSchema"]
        fed = {item.argument: item.required for item in made.plan.parameters}
        if made.plan.body is not None:
            fed[made.plan.body.argument] = made.plan.body.required
        if made.plan.bodies:
            fed[made.plan.choice] = False
        assert set(schema["properties"]) == set(fed)
        assert set(schema.get("required", ())) == {argument for argument, required in fed.items() if required}


@pytest.mark.parametrize("real_document", ["figma-31.yaml", "kubernetes-apps-v1.json"], indirect=True)
def test_compiling_twice_gives_the_same(real_document: RealDocument) -> None:
    """Ours: a compilation depends on the document and the options alone."""
    assert compile_document(real_document.raw, OPTIONS) == real_document.compilation


@pytest.mark.parametrize(
    ("name", "examples"),
    [
        ("petstore-v3.yaml", 16),
        ("figma-31.yaml", 0),
        ("qdrant.json", 87),
        ("kubernetes-apps-v1.json", 0),
        ("twilio-verify.yaml", 81),
        pytest.param("asana.yaml", 359, marks=pytest.mark.long),
        pytest.param("github.json", 213, marks=pytest.mark.long),
        pytest.param("openai-31.yaml", 64, marks=pytest.mark.long),
        pytest.param("sendgrid-v2.json", 283, marks=pytest.mark.long),
        pytest.param("slack-web-v2.json", 162, marks=pytest.mark.long),
        pytest.param("square.json", 138, marks=pytest.mark.long),
        pytest.param("twilio-api-2010.json", 261, marks=pytest.mark.long),
    ],
)
def test_listed_output_schemas_are_valid_and_of_objects(name: str, examples: int) -> None:
    """MCP: an output schema is of an object, complete, and accepts its document's examples (TDF-5, OAS-8)."""
    raw = load_spec(name)
    made = compile_document(raw, ImportOptions(base_url="https://api.example.com", output_schemas=True))
    listed = [schema for item in made.operations if (schema := definition_of(item).get("outputSchema")) is not None]
    root: Any = read_tree(raw)
    judged = judge_responses(root, read_outputs(made))

    assert listed
    assert judged.count >= examples
    assert judged.refused == []
    for schema in listed:
        assert schema["type"] == "object"
        assert compiles(schema)
        assert compiles(loose_output_schema(schema))
        assert all(
            part["$ref"].removeprefix("#/$defs/") in schema["$defs"] for part in schemas(schema) if "$ref" in part
        )


@only("github.json")
def test_github_keeps_all_its_operations(real_document: RealDocument) -> None:
    """Ours: 1,223 operations, each a whole tool; two notes are about examples of another shape (OAS-3)."""
    report = real_document.compilation.report

    assert report.count(Status.OK) == 1223
    assert sum("the example at" in note for note in report.notes) == 2


@only("github.json")
def test_a_known_operation_of_github_is_planned_exactly(real_document: RealDocument) -> None:
    """OpenAPI: path, query and body of a real operation."""
    made = next(item for item in real_document.compilation.operations if item.operation_id == "issues/create")

    assert made.tool == "issues_create"
    assert made.plan.path == "/base/repos/{0}/{1}/issues"
    assert [item.argument for item in made.plan.parameters] == ["owner", "repo"]
    assert made.plan.body is not None
    assert made.plan.body.required
    assert "title" in definition_of(made)["inputSchema"]["properties"]["body"]["required"]
