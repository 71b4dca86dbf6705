"""The positions of refused examples: each pointer leads to exactly that example, wherever the document has it."""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from gateway.domain.json_access import tokens_of
from gateway.openapi import warnings
from gateway.openapi.compiler import compile_document
from gateway.openapi.document.bundle import bundle
from gateway.openapi.document.document import read_tree
from gateway.openapi.document.file_positions import FilePositions
from gateway.openapi.document.references import find_step
from gateway.openapi.operation import outputs
from gateway.openapi.operation.example_checks import ExampleChecks, ExampleVerdict
from gateway.openapi.options import ImportOptions
from tests.support.archives import zip_of
from tests.support.openapi import document
from tests.support.real_documents import ARCHIVE, OPTIONS, RealDocument

LOSS = re.compile(r"the example at (.*?) does not fit its schema: (.*)", re.DOTALL)
OUTPUT_LOSS = re.compile(rf"/\S*?/responses: {LOSS.pattern}; the tool lists no output schema", re.DOTALL)
OBJECT: dict[str, Any] = {"type": "object"}
BAD = {"example": 1}
TEXT = "application/json"
X = "/paths/~1x/post"
BODY = f"{X}/requestBody/content/application~1json"


def post(node: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A document with one operation."""
    return document({"/x": {"post": node}}, **more)


def json_body(media: Mapping[str, Any]) -> dict[str, Any]:
    """A request body of JSON."""
    return {"content": {TEXT: media}}


def query(**more: Any) -> dict[str, Any]:
    """A query parameter whose example does not fit."""
    return {"name": "q", "in": "query", "schema": OBJECT, "example": [1], **more}


def swagger(*parameters: Any, **item: Any) -> dict[str, Any]:
    """A Swagger 2.0 document with one operation."""
    found: dict[str, Any] = {"post": {"parameters": list(parameters), "responses": {}}, **item}
    return {"swagger": "2.0", "info": {}, "host": "api.example.com", "paths": {"/x": found}}


def refused(raw: Mapping[str, Any]) -> list[str]:
    """The positions in the notes of the report."""
    report = compile_document(raw, ImportOptions(base_url="https://api.example.com")).report
    return [match[1] for note in report.notes if (match := LOSS.fullmatch(note))]


def value_at(root: object, pointer: str) -> object:
    """Value at the pointer."""
    for token in tokens_of(pointer):
        root, is_there = find_step(root, token)
        assert is_there, pointer
    return root


def schemas(**found: Any) -> dict[str, Any]:
    """Shared schemas."""
    return {"components": {"schemas": found}}


PET = {"$ref": "#/components/schemas/Pet"}
DEEP = {"type": "object", "properties": {"allOf": {"type": "array", "items": {**OBJECT, **BAD}}}}
SHORT = ("meilisearch.yaml", "oai-uspto.yaml", "petstore-v3.yaml", "qdrant.json", "spotify.yml")
LONG = (
    ARCHIVE,
    "asana.yaml",
    "github.json",
    "openai-31.yaml",
    "sendgrid-v2.json",
    "square.json",
    "twilio-api-2010.json",
    "twilio-verify.yaml",
)
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "media type": (post({"requestBody": json_body({"schema": OBJECT, "example": [1]})}), f"{BODY}/example"),
    "named example": (
        post({"requestBody": json_body({"schema": OBJECT, "examples": {"a/b": {"value": [1]}}})}),
        f"{BODY}/examples/a~1b/value",
    ),
    "shared example": (
        post(
            {"requestBody": json_body({"schema": OBJECT, "examples": {"a": {"$ref": "#/components/examples/E"}}})},
            components={"examples": {"E": {"value": [1]}}},
        ),
        "/components/examples/E/value",
    ),
    "shared body": (
        post(
            {"requestBody": {"$ref": "#/components/requestBodies/B"}},
            components={"requestBodies": {"B": json_body({"schema": OBJECT, "example": [1]})}},
        ),
        "/components/requestBodies/B/content/application~1json/example",
    ),
    "shared schema": (
        post({"requestBody": json_body({"schema": PET})}, **schemas(Pet={**OBJECT, **BAD})),
        "/components/schemas/Pet/example",
    ),
    "property with the name of a keyword": (
        post({"requestBody": json_body({"schema": DEEP})}),
        f"{BODY}/schema/properties/allOf/items/example",
    ),
    "list of examples": (
        post({"requestBody": json_body({"schema": {"type": "object", "examples": [{}, [1]]}})}),
        f"{BODY}/schema/examples/1",
    ),
    "branch of a choice": (
        post({"requestBody": json_body({"schema": {"anyOf": [{"type": "null"}, {**OBJECT, "example": [1]}]}})}),
        f"{BODY}/schema/anyOf/1/example",
    ),
    "operation's parameter": (post({"parameters": [query()]}), f"{X}/parameters/0/example"),
    "shared parameter": (
        post({"parameters": [{"$ref": "#/components/parameters/Q"}]}, components={"parameters": {"Q": query()}}),
        "/components/parameters/Q/example",
    ),
    "parameter of the path": (
        document({"/x": {"parameters": [query(name="a", example={}), query()], "post": {"parameters": []}}}),
        "/paths/~1x/parameters/1/example",
    ),
    "path elsewhere": (
        document(
            {
                "/x": {"$ref": "#/components/pathItems/I", "parameters": [query(name="a", example={})]},
            },
            components={"pathItems": {"I": {"parameters": [query()], "post": {"parameters": []}}}},
        ),
        "/components/pathItems/I/parameters/0/example",
    ),
    "parameter beside a path elsewhere": (
        document(
            {
                "/x": {"$ref": "#/components/pathItems/I", "parameters": [query()]},
            },
            components={"pathItems": {"I": {"parameters": [query(name="a", example={})], "post": {}}}},
        ),
        "/paths/~1x/parameters/0/example",
    ),
    "method elsewhere": (
        document(
            {"/x": {"$ref": "#/components/pathItems/I"}},
            components={"pathItems": {"I": {"post": {"requestBody": json_body({"schema": OBJECT, "example": [1]})}}}},
        ),
        "/components/pathItems/I/post/requestBody/content/application~1json/example",
    ),
    "equal values": (
        post(
            {
                "parameters": [
                    query(name="a", schema={}, example=1),
                    {"name": "b", "in": "query", "content": {TEXT: {"schema": OBJECT, "example": 1}}},
                ]
            }
        ),
        f"{X}/parameters/1/content/application~1json/example",
    ),
    "equal values inside": (
        post(
            {
                "requestBody": json_body(
                    {"schema": {"properties": {"a": BAD, "b": {**OBJECT, **BAD}, "c": {"properties": {"b": BAD}}}}}
                )
            }
        ),
        f"{BODY}/schema/properties/b/example",
    ),
    "file beside it": (
        post(
            {
                "requestBody": {
                    "content": {
                        "multipart/form-data": {
                            "schema": {
                                "type": "object",
                                "properties": {
                                    "file": {"type": "string", "format": "binary"},
                                    "about": {"type": "array", "items": {**OBJECT, **BAD}},
                                },
                            }
                        }
                    }
                }
            }
        ),
        f"{X}/requestBody/content/multipart~1form-data/schema/properties/about/items/example",
    ),
    "Swagger parameter": (
        swagger(
            {"name": "a", "in": "query", "type": "array", "items": {"type": "array", "items": {}, **BAD}},
            {"name": "b", "in": "query", "type": "integer", "x-example": 1},
        ),
        f"{X}/parameters/0/items/example",
    ),
    "Swagger body": (
        swagger(
            {"name": "a", "in": "query", "type": "integer", "x-example": 1},
            {"name": "body", "in": "body", "schema": {**OBJECT, **BAD}},
        ),
        f"{X}/parameters/1/schema/example",
    ),
    "Swagger field of the path": (
        swagger(
            {"name": "a", "in": "formData", "type": "string", "x-example": "x"},
            parameters=[{"name": "b", "in": "formData", "type": "array", "items": {"type": "array", **BAD}}],
        ),
        "/paths/~1x/parameters/0/items/example",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_refused_example_is_reported_at_its_place(name: str) -> None:
    """Ours: references, forms, merged paths and Swagger 2.0 lead to the position in the document (OAS-8)."""
    raw, expected = CASES[name]

    assert refused(raw) == [f"#{expected}"]
    assert value_at(raw, expected) in ([1], 1)


FILES = {
    "spec/api.json": document(
        {
            "/a": {"$ref": "paths/a.json", "parameters": [query()]},
            "/b": {"post": {"requestBody": json_body({"schema": {"$ref": "pet.json#/Cat"}})}},
            "/c": {"post": {"requestBody": json_body({"schema": {"$ref": "#/components/schemas/Dog"}})}},
            "/d": {"post": {"requestBody": json_body({"schema": OBJECT, "example": [1]})}},
        },
        **schemas(Dog={"$ref": "pet.json#/Dog"}),
    ),
    "spec/paths/a.json": {
        "parameters": [query(name="first"), query(name="second", example={})],
        "get": {"parameters": [{"$ref": "../pet.json#/parameters/0"}]},
    },
    "spec/pet.json": {
        "Cat": {**OBJECT, **BAD},
        "Dog": {"type": "object", "properties": {"kennel": {**OBJECT, **BAD}}},
        "parameters": [query(name="third")],
    },
}
PLACES = {
    "spec/paths/a.json#/parameters/0/example",
    "spec/pet.json#/parameters/0/example",
    "spec/api.json#/paths/~1a/parameters/0/example",
    "spec/pet.json#/Cat/example",
    "spec/pet.json#/Dog/properties/kennel/example",
    "spec/api.json#/paths/~1d/post/requestBody/content/application~1json/example",
}


@pytest.mark.parametrize(
    ("entry", "url", "prefix"),
    [
        (None, None, ""),
        ("spec/api.json", "https://who:secret@a.example/spec/api.json?v=1", "https://a.example/"),
        ("spec/api.json", "https://a.example/archive.zip", ""),
    ],
)
def test_positions_in_files_begin_with_the_file(entry: str | None, url: str | None, prefix: str) -> None:
    """Ours: a person finds the example in the file that has it, also where it moved into the document (OAS-8)."""
    packed = zip_of({name: json.dumps(content).encode() for name, content in FILES.items()})
    raw = bundle({name: json.dumps(content).encode() for name, content in FILES.items()}, entry=entry).document
    origin = FilePositions(packed, entry=entry, url=url)

    notes = compile_document(raw, ImportOptions(), origin=origin).report.notes
    named = {match[1] for note in notes if (match := LOSS.fullmatch(note))}
    assert named == {f"{prefix}{place}" for place in PLACES}
    for place in PLACES:
        file, _, pointer = place.partition("#")
        assert value_at(FILES[file], pointer) in ([1], 1)


def test_thousands_of_equal_examples_have_their_own_positions() -> None:
    """Ours: each has its own position, found without a comparison with all others (OAS-8)."""
    properties = {f"p{number}": {**OBJECT, **BAD} for number in range(4000)}
    pointers = refused(post({"requestBody": json_body({"schema": {"properties": properties}})}))

    assert pointers == [f"#{BODY}/schema/properties/p{number}/example" for number in range(len(pointers))]
    assert len(pointers) == 500


def test_a_position_is_short_and_has_no_hidden_characters() -> None:
    """Ours: a name in a document cannot disguise or flood a report (OAS-3)."""
    schema = {"type": "object", "properties": {"a\u202eb\u200b" + "x" * 1000: {**OBJECT, **BAD}}}
    (pointer,) = refused(post({"requestBody": json_body({"schema": schema})}))

    assert len(pointer) == 500
    assert "/properties/abxxx" in pointer


def print_value(_: ExampleChecks, value: object, *_further: object) -> ExampleVerdict:
    """A fault that consists of the example itself."""
    return ExampleVerdict("refused", fault=json.dumps(value))


@pytest.mark.parametrize(
    "real_document", [*SHORT, *(pytest.param(name, marks=pytest.mark.long) for name in LONG)], indirect=True
)
def test_every_example_of_a_real_document_is_found(
    real_document: RealDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: if each example were refused, each pointer would lead to exactly that example (OAS-8)."""
    root = read_tree(real_document.raw)
    monkeypatch.setattr(ExampleChecks, "_judge", print_value)
    for module, limit in ((warnings, "MAX_WARNINGS"), (outputs, "MAX_OUTPUT_WARNINGS")):
        monkeypatch.setattr(module, limit, sys.maxsize)

    result = compile_document(real_document.raw, replace(OPTIONS, output_schemas=True)).report
    losses = [LOSS.fullmatch(note) for note in result.notes]
    losses += [OUTPUT_LOSS.fullmatch(warning) for warning in result.warnings]
    found = {(match[1], match[2]) for match in losses if match}
    assert found
    for pointer, value in found:
        assert json.dumps(value_at(root, pointer.removeprefix("#"))) == value
