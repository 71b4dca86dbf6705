"""A document for the query tools, and what one caller sees of it."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from gateway.domain.policy import Safety
from gateway.domain.tools import Origin, Tool
from gateway.openapi.compile import ImportOptions, compile_document
from gateway.openapi.query_answers import ANSWERS, Answer, Asked, choose_views
from gateway.openapi.query_api import Api, View
from gateway.openapi.query_outline import decode_outline


def library(url: str = "https://api.example.com") -> dict[str, Any]:
    """Books and shelves: shared parameters, servers and security at several levels, schemas that lead to each other."""
    node = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "inside": {"$ref": "#/components/schemas/Shelf"}},
    }
    book = {
        "type": "object",
        "description": "A book.",
        "required": ["title"],
        "properties": {"title": {"type": "string"}, "author": {"$ref": "#/components/schemas/Author"}},
    }
    failure = {
        "description": "failed",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Failure"}}},
    }
    answer = {"description": "ok", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Book"}}}}
    page = {"name": "page", "in": "query", "schema": {"type": "integer"}}
    book_id = {"name": "bookId", "in": "path", "required": True, "schema": {"type": "string"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Library", "version": "2", "description": "Books to lend."},
        "servers": [{"url": url + "/{stage}", "variables": {"stage": {"default": "v1"}}}],
        "tags": [{"name": "books"}],
        "security": [{"key": []}],
        "paths": {
            "/books": {
                "get": {
                    "operationId": "listBooks",
                    "summary": "All books there are",
                    "tags": ["books"],
                    "parameters": [{"$ref": "#/components/parameters/Page"}],
                    "responses": {"200": answer, "default": {"$ref": "#/components/responses/Failure"}},
                },
                "post": {
                    "operationId": "addBook",
                    "tags": ["books"],
                    "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Book"}}}},
                    "responses": {"201": answer},
                    "security": [],
                },
            },
            "/books/{bookId}": {
                "parameters": [book_id, page],
                "servers": [{"url": f"{url}/archive"}],
                "get": {
                    "operationId": "getBook",
                    "deprecated": True,
                    "parameters": [{"name": "page", "in": "query", "description": "own", "schema": {"type": "string"}}],
                    "responses": {"200": answer},
                },
                "delete": {"operationId": "removeBook", "responses": {"204": {"description": "gone"}}},
            },
            "/shelves": {
                "get": {
                    "summary": "Where things stand",
                    "description": "Nothing about novels.",
                    "responses": {
                        "200": {
                            "description": "ok",
                            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Shelf"}}},
                        }
                    },
                }
            },
        },
        "components": {
            "parameters": {"Page": page},
            "responses": {"Failure": failure},
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
            "schemas": {
                "Author": {"type": "object", "properties": {"country": {"$ref": "#/components/schemas/Country"}}},
                "Book": book,
                "Country": {"type": "string"},
                "Failure": {"type": "object", "properties": {"message": {"type": "string"}}},
                "Shelf": node,
            },
        },
    }


def view_of(document: Mapping[str, object] | bytes, *, source: str = "api", only: str | None = None) -> View:
    """A document as one sees it who sees everything, or only the operations of one method."""
    options = ImportOptions(base_url="https://api.example.com" if isinstance(document, bytes) else None, outline=True)
    compiled = compile_document(document, options)
    outline, _ = decode_outline(compiled.outline)
    tools = {
        made.identity: Tool(
            name=made.tool,
            definition=made.definition,
            safety=Safety.SAFE,
            safety_reasons=(),
            origin=Origin.SOURCE,
            source_name=source,
            identity=made.identity,
        )
        for made in compiled.operations
        if only is None or made.method == only
    }
    return View(source=source, api=Api(outline), tools=tools, is_whole=only is None)


def ask(tool: str, /, *views: View, **arguments: object) -> Answer:
    """What a query tool answers, as it arrives: through JSON."""
    asked = Asked(arguments=arguments, offset=cast("int", arguments.get("offset", 0)))
    answer = ANSWERS[tool](choose_views(views, asked.text("source")), asked)
    found: Answer = msgspec.json.decode(msgspec.json.encode(answer))
    return found
