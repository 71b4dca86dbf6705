"""A document for the query tools, what one caller sees of it, and what can be found out without them."""

import ast
import re
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote

import msgspec

from gateway.domain.sources import Compilation
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.openapi.compiler import compile_document
from gateway.openapi.options import ImportOptions
from gateway.openapi.query.answers import ANSWERS, Answer, QueryCall, choose_views
from gateway.openapi.query.api import ApiView, DocumentIndex
from gateway.openapi.query.outline import decode_outline
from gateway.openapi.query.truncation import render


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


def view_of(document: Mapping[str, object] | bytes, *, source: str = "api", only: str | None = None) -> ApiView:
    """A document as one sees it who sees everything, or only the operations of one method."""
    options = ImportOptions(base_url="https://api.example.com" if isinstance(document, bytes) else None, outline=True)
    return view_of_compiled(compile_document(document, options), source=source, only=only)


def view_of_compiled(compiled: Compilation, *, source: str = "api", only: str | None = None) -> ApiView:
    """The same of a document that is compiled already."""
    outline, _ = decode_outline(compiled.outline)
    tools = {
        made.identity: Tool(
            name=made.tool,
            definition=made.definition,
            safety=Safety.SAFE,
            safety_reasons=(),
            origin=PrimitiveOrigin.SOURCE,
            source_name=source,
            identity=made.identity,
        )
        for made in compiled.operations
        if only is None or made.method == only
    }
    return ApiView(source=source, api=DocumentIndex(outline), tools=tools, is_whole=only is None)


def ask(tool: str, /, *views: ApiView, **arguments: object) -> Answer:
    """Answer of a query tool, as it arrives: through JSON."""
    asked = QueryCall(arguments=arguments, offset=cast("int", arguments.get("offset", 0)))
    answer = ANSWERS[tool](choose_views(views, asked.text("source")), asked)
    found: Answer = msgspec.json.decode(msgspec.json.encode(answer))
    return found


class Reader:
    """Reads an answer by following every pointer until nothing is left out."""

    def __init__(self, view: ApiView, tool: str, **arguments: object) -> None:
        self._view = view
        self._tool = tool
        self._arguments = arguments
        self.largest = 0
        self.asked = 0

    def read(self) -> Any:
        """All of it."""
        return self._joined(self._ask())

    def _ask(self, **more: object) -> Any:
        self.asked += 1
        answer = ask(self._tool, self._view, **self._arguments, **more)
        self.largest = max(self.largest, len(render(answer).encode()))
        return answer

    def part(self, pointer: str, offset: int = 0) -> Any:
        """All of what is at the pointer."""
        more = {"offset": offset} if offset else {}
        return self._joined(self._ask(pointer=pointer, **more)["value"])

    def _joined(self, value: Any) -> Any:
        if isinstance(value, str) and (cut := _CUT_TEXT.search(value)) is not None:
            rest: str = self.part(ast.literal_eval(cut[1]), int(cut[2]))
            return value[: cut.start()] + rest
        if isinstance(value, list):
            return self._list(cast("list[object]", value))
        return self._object(cast("dict[str, Any]", value)) if isinstance(value, dict) else value

    def _list(self, items: list[object]) -> list[Any]:
        end = cast("dict[str, Any]", items[-1]) if items and isinstance(items[-1], dict) else {}
        if list(end) == ["$cut"] and "offset" in end["$cut"]:
            cut: dict[str, Any] = end["$cut"]
            return [*map(self._joined, items[:-1]), *self.part(cut["pointer"], cut["offset"])]
        return [self._joined(item) for item in items]

    def _object(self, members: dict[str, Any]) -> Any:
        cut = members.get("$cut")
        if cut is None:
            return {name: self._joined(member) for name, member in members.items()}
        if "offset" not in cut:
            return self.part(cut["pointer"])
        shown = {name: self._joined(member) for name, member in members.items() if name != "$cut"}
        return shown | self.part(cut["pointer"], cut["offset"])


class Graph:
    """Named schemas of a parsed document and the schemas that each leads to, computed without shortcuts."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._section = ["definitions"] if "swagger" in root else ["components", "schemas"]
        named: Any = root
        for key in self._section:
            named = named.get(key) or {}
        schemas: dict[str, Any] = named
        self.direct = {name: self.named_in(schema) for name, schema in schemas.items()}

    def operations(self) -> dict[str, set[str]]:
        """The schemas that each operation refers to itself, by `METHOD path`."""
        found: dict[str, set[str]] = {}
        paths: dict[str, Any] = self._root.get("paths") or {}
        for path in paths:
            item = self._item(path)
            for method in ("get", "put", "post", "delete", "options", "head", "patch", "trace"):
                if isinstance(item.get(method), dict):
                    reported = {key: item[method].get(key) for key in ("requestBody", "responses", "callbacks")}
                    reported["parameters"] = list(self._parameters(item, item[method]).values())
                    found[f"{method.upper()} {path}"] = self.named_in(reported)
        return found

    def parameters(self, method: str, path: str) -> set[tuple[str, str]]:
        """The name and place of each parameter that applies to an operation."""
        item = self._item(path)
        return set(self._parameters(item, item[method.lower()]))

    def reached(self, names: set[str]) -> set[str]:
        """Every schema that these lead to."""
        found: set[str] = set()
        waiting = [link for name in names for link in self.direct.get(name, ())]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.direct.get(name, ())
        return found

    def named_in(self, node: Any) -> set[str]:
        """The schemas that a part refers to, also through what is no named schema."""
        found: set[str] = set()
        seen: set[str] = set()
        waiting = [node]
        while waiting:
            part = waiting.pop()
            if isinstance(part, dict):
                members = cast("dict[str, Any]", part)
                ref = members.get("$ref")
                if isinstance(ref, str) and ref.startswith("#/") and ref not in seen:
                    seen.add(ref)
                    tokens = _tokens(ref)
                    is_named = tokens[: len(self._section)] == self._section
                    if is_named:
                        found.add(tokens[len(self._section)])
                    if not is_named or len(tokens) > len(self._section) + 1:
                        waiting.append(self._target(ref))
                waiting += members.values()
            elif isinstance(part, list):
                waiting += cast("list[object]", part)
        return found

    def _item(self, path: str) -> Mapping[str, Any]:
        node = self._root["paths"][path]
        found: Mapping[str, Any] = self._target(node["$ref"]) | node if "$ref" in node else node
        return found

    def _parameters(self, item: Mapping[str, Any], operation: Mapping[str, Any]) -> dict[Any, Any]:
        merged: dict[Any, Any] = {}
        shared: list[dict[str, Any]] = item.get("parameters") or []
        own: list[dict[str, Any]] = operation.get("parameters") or []
        for node in [*shared, *own]:
            found: dict[str, Any] = (self._target(node["$ref"]) if "$ref" in node else node) or {}
            if isinstance(found.get("name"), str):
                merged[found["name"], found.get("in")] = node
        return merged

    def _target(self, ref: str) -> Any:
        node: Any = self._root
        for token in _tokens(ref):
            key: Any = int(token) if isinstance(node, list) else token
            try:
                node = cast("Any", node)[key]
            except (LookupError, TypeError):  # it leads nowhere
                return None
        return node


def _tokens(ref: str) -> list[str]:
    return [token.replace("~1", "/").replace("~0", "~") for token in unquote(ref).split("/")[1:]]


_CUT_TEXT = re.compile(r"… \[truncated; continue with pointer (.+) and offset (\d+)\]\Z", re.DOTALL)
