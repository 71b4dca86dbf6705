"""Documents of many files: their joint content, and unreachable references."""

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from gateway.errors import DocumentTooLarge, InvalidDocument
from gateway.openapi.compiler import compile_document
from gateway.openapi.document import bundle as bundling
from gateway.openapi.document.bundle import Bundle, bundle
from gateway.openapi.options import ImportOptions
from tests.support.archives import ZOO
from tests.support.openapi import definition_of

ROOT = 'openapi: 3.1.0\ninfo: {title: T, version: "1"}\nservers: [{url: "https://a.example"}]\n'


def made(files: Mapping[str, bytes | str], entry: str | None = None) -> Bundle:
    return bundle(
        {name: text if isinstance(text, bytes) else text.encode() for name, text in files.items()}, entry=entry
    )


def document(files: Mapping[str, bytes | str]) -> Any:
    return orjson.loads(made(files).document)


def test_files_become_one_document_with_readable_names() -> None:
    """Ours: path items and operations replace their references, schemas and parameters become components."""
    found = document(ZOO)

    assert set(found["components"]["schemas"]) == {"Animal", "keeper", "size"}
    assert found["paths"]["/animals"]["post"]["operationId"] == "add_animal"
    assert found["paths"]["/animals"]["get"]["parameters"] == [{"$ref": "#/components/parameters/limit"}]
    assert found["components"]["parameters"]["limit"]["schema"] == {"$ref": "#/components/schemas/size"}
    assert found["components"]["schemas"]["Animal"]["properties"]["mother"] == {"$ref": "#/components/schemas/Animal"}
    assert "yaml" not in orjson.dumps(found).decode()


def test_a_cycle_over_files_is_kept_as_local_references() -> None:
    """Ours: a schema that refers to itself through other files is listed with its cycle (OAS-4, OAS-7)."""
    compiled = compile_document(made(ZOO).document, ImportOptions())
    add = next(operation for operation in compiled.operations if operation.tool == "add_animal")
    schema = definition_of(add)["inputSchema"]

    assert [operation.tool for operation in compiled.operations] == ["list_animals", "add_animal", "add_keeper"]
    assert set(schema["$defs"]) == {"Animal", "keeper"}
    assert schema["$defs"]["keeper"]["properties"]["cares_for"]["items"] == {"$ref": "#/$defs/Animal"}


def test_the_same_files_make_the_same_bytes_in_every_order() -> None:
    """Ours: a bundle depends on the files alone."""
    assert made(dict(reversed(list(ZOO.items())))) == made(ZOO)


def test_clashing_names_contain_their_file() -> None:
    """Ours: two files of one name become two components."""
    files = {
        "openapi.yaml": ROOT + "paths:\n  /x:\n    post:\n      requestBody: {content: {application/json: {schema: "
        "{oneOf: [{$ref: a/item.yaml}, {$ref: b/item.yaml}, {$ref: c.yaml#/item}]}}}}\n",
        "a/item.yaml": "type: string",
        "b/item.yaml": "type: integer",
        "c.yaml": "item: {type: boolean}",
    }
    assert set(document(files)["components"]["schemas"]) == {"item", "b_item", "c_item"}


def test_swagger_sections_accept_their_own_objects() -> None:
    """OpenAPI 2.0: shared schemas are under `definitions`."""
    files = {
        "api.json": '{"swagger":"2.0","info":{},"host":"a.example","paths":{"/x":{"post":{"operationId":"op",'
        '"parameters":[{"$ref":"p.yaml#/body"}],"responses":{}}}}}',
        "p.yaml": "body: {name: b, in: body, schema: {$ref: s.yaml}}",
        "s.yaml": "type: object\nproperties: {child: {$ref: '#'}}",
    }
    found = document(files)

    assert set(found["definitions"]) == {"s"}
    (operation,) = compile_document(orjson.dumps(found), ImportOptions()).operations
    assert set(definition_of(operation)["inputSchema"]["$defs"]) == {"s"}


def test_a_pointer_may_lead_through_another_reference() -> None:
    """Ours: references on the way to a place are followed."""
    files = {
        "o.yaml": ROOT + "paths:\n  /x:\n    get:\n      parameters: [{$ref: 'a.yaml#/p/inner'}]\n",
        "a.yaml": "p: {$ref: b.yaml#/q}",
        "b.yaml": "q: {inner: {name: n, in: query}}",
    }
    assert document(files)["components"]["parameters"]["inner"] == {"name": "n", "in": "query"}


@pytest.mark.parametrize(
    "ref",
    [
        "missing.yaml",
        "../../../../etc/passwd",
        "/etc/passwd",
        "a.yaml#/none",
        "a.yaml#anchor",
        "a.yaml#/loop",
        "file:///etc/passwd",
        "https://a.example/x",
        "//a.example/x",
    ],
)
def test_a_reference_to_nothing_in_the_archive_costs_its_operation_only(ref: str) -> None:
    """Ours: nothing outside the archive is ever read; the report names the requested file (OAS-7)."""
    post = "post: {operationId: %s, requestBody: {content: {application/json: {schema: {$ref: '%s'}}}}}"
    files = {
        "o.yaml": ROOT + f"paths:\n  /x: {{{post % ('bad', ref)}}}\n  /y: {{{post % ('good', 'a.yaml#/s')}}}\n",
        "a.yaml": "s: {type: string}\nloop: {$ref: '#/loop2'}\nloop2: {$ref: '#/loop'}",
    }
    report = compile_document(made(files).document, ImportOptions()).report

    fates = {item.operation_id: item for item in report.operations}
    assert fates["good"].status == "ok"
    assert fates["bad"].status != "ok" or ref.endswith("loop")


def test_items_that_contain_themselves_do_not_grow() -> None:
    """Ours: an object that cannot be a component and refers to itself keeps that reference."""
    files = {
        "o.yaml": ROOT + "paths: {/x: {$ref: p.yaml}}",
        "p.yaml": "get: {operationId: op, callbacks: {c: {u: {$ref: p.yaml}}}}",
    }
    assert document(files)["paths"]["/x"]["get"]["operationId"] == "op"


def test_doubling_over_files_ends_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: 2^30 copies of a value are not made (OAS-7)."""
    monkeypatch.setattr(bundling, "MAX_NODES", 10_000)
    files: dict[str, bytes | str] = {
        f"{n}.yaml": f"a: {{$ref: {n + 1}.yaml}}\nb: {{$ref: {n + 1}.yaml}}" for n in range(30)
    }
    with pytest.raises(DocumentTooLarge):
        made({"o.yaml": ROOT + "paths: {}\ninfos: {$ref: 0.yaml}", **files, "30.yaml": "x: 1"})


@pytest.mark.parametrize(
    ("files", "entry", "states"),
    [
        ({"a.yaml": "x: 1"}, None, "no file is"),
        ({"a.yaml": ROOT, "b.yaml": ROOT}, None, "a.yaml, b.yaml"),
        ({"a.yaml": ROOT}, "c.yaml", "there is no file 'c.yaml'"),
        ({"a.yaml": ROOT + "paths: {$ref: b.yaml}", "b.yaml": "{"}, None, "'b.yaml'"),
    ],
)
def test_an_archive_without_one_document_is_refused(
    files: dict[str, bytes | str], entry: str | None, states: str
) -> None:
    """Ours: the refusal names the file (OAS-7)."""
    with pytest.raises(InvalidDocument, match=states):
        made(files, entry)


def test_the_document_nearest_to_the_root_is_meant_unless_another_is_named() -> None:
    """Ours: the outermost file is found, or named as `entry` (OAS-7)."""
    files = {"a/b/old.yaml": ROOT, "a/new.yaml": ROOT.replace("title: T", "title: New") + "paths: {}"}
    assert document(files)["info"]["title"] == "New"
    assert orjson.loads(made(files, "./a/b/old.yaml").document)["info"]["title"] == "T"


def test_a_document_without_operations_is_a_root_only_alone() -> None:
    """Ours: shared parameters nearest to the root hide no document; of several documents none is guessed (OAS-4)."""
    shared, whole = f"{ROOT}components: {{}}\n", f"{ROOT}paths: {{/a: {{get: {{responses: {{}}}}}}}}\n"

    assert document({"_global.yaml": shared, "specs/a.yaml": whole})["paths"]
    assert document({"_global.yaml": shared, "a.yaml": whole})["paths"]
    assert "components" in document({"_global.yaml": shared})
    with pytest.raises(InvalidDocument, match="several files are OpenAPI documents"):
        made({"_global.yaml": shared, "specs/a.yaml": whole, "specs/b.yaml": whole})
    with pytest.raises(InvalidDocument, match="several files are OpenAPI documents"):
        made({"_global.yaml": shared, "other.yaml": shared})
