"""Random documents of every version of OpenAPI, with random schemas at every place that has one."""

from random import Random
from typing import Any, Final

from tests.support.random_schemas import NAMES, RandomSchemas

VERSIONS: Final = ("2.0", "3.0.3", "3.1.0", "3.2.0")
_STYLES: Final = ("form", "deepObject", "simple", "pipeDelimited", "spaceDelimited", "label", "matrix")
_BODIES: Final = (
    *("application/json", "application/merge-patch+json", "multipart/form-data", "application/x-www-form-urlencoded"),
    *("application/xml", "text/plain", "application/octet-stream"),
)


class RandomDocument:
    """One document, and values for the arguments of its tools, from one source of chance."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self.version = chance.choice(VERSIONS)
        self._is_old = self.version == "2.0"
        at = "#/definitions/" if self._is_old else "#/components/schemas/"
        self.schemas = RandomSchemas(chance, definitions_at=at, oddity=chance.choice((0, 0.02, 0.06)))
        self.root = self._document()

    def _document(self) -> dict[str, Any]:
        made = self.schemas
        paths = {path: {"post": node} for path, node in (self._operation(number) for number in range(2))}
        named = {name: made.object_schema() if self._often() else made.schema() for name in NAMES[:3]}
        info = {"title": "t", "version": "1"}
        if self._is_old:
            address = {"host": "a.example", "schemes": ["https"]}
            return {"swagger": "2.0", "info": info, **address, "paths": paths, "definitions": named}
        servers = [{"url": "https://a.example"}]
        components = {"schemas": named}
        return {"openapi": self.version, "info": info, "servers": servers, "paths": paths, "components": components}

    def _operation(self, number: int) -> tuple[str, dict[str, Any]]:
        parameters = [self._parameter(name) for name in NAMES[: self._chance.randint(0, 3)]]
        named = (f"/{{{one['name']}}}" for one in parameters if one["in"] == "path")
        schema = self.schemas.schema()
        content = {"schema": schema} if self._is_old else {"content": {"application/json": {"schema": schema}}}
        node: dict[str, Any] = {
            "operationId": f"op{number}",
            "parameters": parameters,
            "responses": {"200": {"description": "d", **content}},
        }
        if self._often():
            self._add_body(node)
        return f"/x{number}{''.join(named)}", node

    def _parameter(self, name: str) -> dict[str, Any]:
        made: dict[str, Any] = {"name": name, "in": self._chance.choice(("query", "header", "path", "cookie"))}
        made["required"] = made["in"] == "path" or not self._often()
        if self._is_old:
            return {**self.schemas.object_schema(1), **made}
        if not self._often():
            made["style"], made["explode"] = self._chance.choice(_STYLES), self._often()
        place = made if self._often() else made.setdefault("content", {}).setdefault("application/json", {})
        place["schema"] = self.schemas.schema()
        return made

    def _add_body(self, node: dict[str, Any]) -> None:
        media_type = self._chance.choice(_BODIES)
        if self._is_old:
            node["consumes"] = [media_type]
            names = ("f0", "f1") if "form" in media_type else ()
            node["parameters"] += [{**self.schemas.object_schema(1), "name": one, "in": "formData"} for one in names]
            if not names:
                node["parameters"].append({"name": "body", "in": "body", "schema": self.schemas.schema()})
            return
        media: dict[str, Any] = {"schema": self.schemas.object_schema() if self._often() else self.schemas.schema()}
        if not self._often():
            media["example"] = self.schemas.value()
        if not self._often():
            media["encoding"] = {"a": {"contentType": "application/json"}}
        node["requestBody"] = {"required": self._often(), "content": {media_type: media}}

    def _often(self) -> bool:
        return self._chance.random() < 0.7
