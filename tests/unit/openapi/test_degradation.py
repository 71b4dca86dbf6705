"""One bad operation costs one tool, never the document; hostile documents cost a bounded amount."""

import random
from collections.abc import Iterable, Iterator
from typing import Any, cast

import orjson
import pytest

from gateway.domain.updates.import_reports import Status
from gateway.errors import DocumentTooLarge, InvalidDocument
from gateway.openapi import compiler
from gateway.openapi.document.document import read_document
from gateway.upstream.serialize.request_builder import RequestBuilder
from tests.support.openapi import compile_it, document, with_body
from tests.support.specs import load_spec

GOOD = {"get": {"operationId": "good"}}


def test_an_operation_of_any_shape_costs_only_itself() -> None:
    """Ours: it is skipped with its reason, the other one stays (OAS-3)."""
    shapes: list[Any] = [None, 1, "text", [], [{}], True]
    result = compile_it(document({**_at_paths({"get": bad} for bad in shapes), "/good": GOOD}))

    *bad, good = result.report.operations
    assert [(item.path, item.status) for item in bad] == [(f"/{number}", Status.SKIPPED) for number in range(6)]
    assert (good.path, good.status) == ("/good", Status.OK)


def _at_paths(items: Iterable[object]) -> dict[str, object]:
    """The path items at the paths `/0`, `/1` and so on."""
    return {f"/{number}": item for number, item in enumerate(items)}


MEMBERS = ["operationId", "summary", "description", "parameters", "requestBody", "responses", "security", "servers"]
SHAPES: list[Any] = [
    None,
    0,
    -1,
    1.5,
    "text",
    "#/x",
    [],
    [None],
    [[]],
    ["a", "a"],
    {},
    {"x": None},
    {"x": []},
    {"$ref": 5},
    True,
]
KEYWORDS = """
    type enum const default required properties patternProperties additionalProperties items prefixItems allOf anyOf
    oneOf not if pattern format title minimum exclusiveMinimum minLength multipleOf dependentRequired dependentSchemas
    nullable readOnly $ref discriminator contains propertyNames
"""


@pytest.mark.parametrize("key", [*MEMBERS, "tags"])
@pytest.mark.parametrize("version", ["3.0.3", "3.1.0", "3.2.0"])
def test_a_member_of_any_shape_never_costs_the_document(key: str, version: str) -> None:
    """Ours: unexpected shapes are judged, not tripped over."""
    values: list[Any] = [None, 0, 1.5, "text", [], [None], [[]], {}, {"x": None}, {"$ref": 5}, {"$ref": "#/x"}, True]
    bad = _at_paths({"post": {key: value}} for value in values)
    result = compile_it(document({**bad, "/good": GOOD}, version=version))

    assert [item.path for item in result.report.operations] == [*bad, "/good"]
    assert result.report.operations[-1].status is Status.OK


@pytest.mark.parametrize("keyword", KEYWORDS.split())
def test_a_schema_of_any_shape_never_costs_the_document(keyword: str) -> None:
    """Ours: for every schema, its operation is accounted for."""
    result = compile_it(document(_at_paths(_with_body(keyword, value) for value in SHAPES)))

    made = [None if (keyword, value) == ("$ref", "text") else f"post_{number}" for number, value in enumerate(SHAPES)]
    assert [item.tool for item in result.report.operations] == made


def _with_body(keyword: str, value: object) -> dict[str, Any]:
    """A path item whose body has the keyword at three places of its schema."""
    schema = {"type": "object", "properties": {"a": {keyword: value}}, keyword: value}
    (path_item,) = with_body({"allOf": [{keyword: value}, schema]})["paths"].values()
    del path_item["post"]["operationId"]
    return cast("dict[str, Any]", path_item)


@pytest.mark.parametrize(
    "more",
    [
        {"components": 1},
        {"components": {"schemas": [], "securitySchemes": []}},
        {"security": {"a": []}},
        {"servers": {}},
        {"info": []},
        {"tags": 1},
        {"webhooks": 1},
    ],
)
def test_a_malformed_rest_never_costs_an_operation(more: dict[str, Any]) -> None:
    """Ours: only what an operation is made of matters."""
    assert compile_it({**document({"/good": GOOD}), **more}, base_url="https://h").report.count(Status.SKIPPED) == 0


@pytest.mark.parametrize("item", [None, 7, [], {"$ref": "https://example.com/item.yaml"}, {"$ref": "#/nowhere"}])
def test_a_path_that_cannot_be_read_is_a_warning(item: object) -> None:
    """Ours: its operations are unknown, so none are counted."""
    result = compile_it(document({"/bad": item, "/good": GOOD}))

    assert [report.path for report in result.report.operations] == ["/good"]
    assert "/paths/~1bad" in result.report.warnings[0]


def test_a_path_item_is_followed_and_its_siblings_count() -> None:
    """OpenAPI 3.1: a path item may be a reference."""
    shared = {"X": {"get": {"summary": "S"}, "parameters": [{"name": "q", "in": "query"}]}}
    raw = document({"/x": {"$ref": "#/components/pathItems/X", "post": {}}}, components={"pathItems": shared})

    assert [made.identity for made in compile_it(raw).operations] == ["GET /x", "POST /x"]


def test_webhooks_and_callbacks_are_no_operations() -> None:
    """Ours: a report counts what can be called."""
    raw = document({"/x": {"post": {"callbacks": {"c": {"{$url}": {"post": {}}}}}}}, webhooks={"w": {"post": {}}})

    assert len(compile_it(raw).report.operations) == 1


def test_the_number_of_operations_is_limited() -> None:
    """Ours: 5,000."""
    with pytest.raises(DocumentTooLarge):
        compile_it(document({f"/{n}": {"get": {}} for n in range(5_001)}))


def test_the_tools_of_a_document_are_limited_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: beyond the limit operations are skipped with their reason."""
    monkeypatch.setattr(compiler, "MAX_LIST_BYTES", 500)
    result = compile_it(document({f"/{n}": {"get": {}} for n in range(10)}))

    assert 0 < len(result.operations) < 10
    assert "(the limit)" in result.report.operations[-1].reasons[0]


@pytest.mark.parametrize("paths", [{}, {"/a": {}}, {"/a": {"parameters": []}}])
def test_a_document_without_operations_is_a_warning(paths: dict[str, Any]) -> None:
    """Ours: an import that makes no tool states it (OAS-3)."""
    assert compile_it(document(paths)).report.warnings == (
        "the document declares no operation under `paths`; the source has no tools",
    )


@pytest.mark.parametrize(("url", "base", "is_lost"), [("/api", "", True), ("/api", "/v1/api", False), ("/", "", False)])
def test_a_relative_server_under_a_base_url_is_reported(url: str, base: str, is_lost: bool) -> None:
    """Ours: requests go to the base URL as it is given, and the report names the path that they lack (OAS-3)."""
    raw = document({"/a": GOOD}, servers=[{"url": url}])
    warning = "the base URL replaces the relative server '/api'; requests lack its path"

    assert compile_it(raw, base_url=f"https://h.example{base}").report.warnings == ((warning,) if is_lost else ())


def test_an_endless_reference_of_a_response_is_reported() -> None:
    """Ours: a response that cannot be read costs its description, and the report has a line about it (OAS-3)."""
    loop = {"$ref": "#/components/responses/a"}
    raw = document({"/a": {"get": {"responses": {"200": loop}}}}, components={"responses": {"a": loop}})
    (warning,) = compile_it(raw).report.warnings

    assert warning.startswith("/paths/~1a/get/responses: ")
    assert warning.endswith("; any response is accepted")


def test_warnings_and_reasons_are_limited() -> None:
    """Ours: a hostile document fills no report."""
    fields = {f"f{n}": {"type": "string", "default": n} for n in range(2_000)}
    missing = {f"g{n}": {"$ref": f"#/gone/{n}"} for n in range(100)}
    result = compile_it(with_body({"properties": {**fields, **missing}}))

    assert len(result.report.warnings) == 501
    assert "1500 further" in result.report.warnings[-1]
    assert len(result.report.operations[0].reasons) == 21


def test_references_in_many_spellings_are_one_schema() -> None:
    """Ours: a large schema is translated once, however it is pointed at."""
    spelled = [f"#/components/schemas/{a}{b}" for a in ("B", "%42") for b in ("ig", "i%67", "%69g", "%69%67")]
    raw = with_body(
        {"prefixItems": [{"$ref": ref} for ref in spelled]}, components={"schemas": {"Big": {"type": "string"}}}
    )
    made = compile_it(raw).operations[0]

    assert made.definition.count(b'"$defs":{"Big":{"type":"string"}}') == 1


def places(node: object) -> Iterator[tuple[Any, Any]]:
    """Every container with every key or index of it."""
    if isinstance(node, dict | list):
        container = cast("dict[str, object] | list[object]", node)
        for key in list(container) if isinstance(container, dict) else range(len(container)):
            yield container, key
            yield from places(cast("Any", container)[key])


@pytest.mark.parametrize("name", ["petstore-v3.yaml", "oai-petstore-expanded-v2.yaml", "notion-31.json"])
def test_a_real_document_with_random_damage_is_still_accounted_for(name: str) -> None:
    """Ours: whatever is damaged, the document is refused as a whole or each operation is judged by itself."""
    whole = orjson.dumps(read_document(load_spec(name)).root)
    chance = random.Random(name)
    for _ in range(40):
        damaged = orjson.loads(whole)
        for container, key in chance.sample(list(places(damaged)), 8):
            container[key] = chance.choice(SHAPES)
        try:
            result = compile_it(damaged, base_url="https://api.example.com")
        except InvalidDocument:
            continue
        for made in result.operations:
            RequestBuilder(made.plan)
        assert len(result.report.operations) >= len(result.operations)
