"""Small OpenAPI documents for tests."""

from typing import Any


def pets(url: str, *, title: str = "Pets") -> dict[str, Any]:
    """Three operations: read by path and query, list, and create with a JSON body."""
    answer = {"200": {"description": "ok", "content": {"application/json": {"schema": {"type": "object"}}}}}
    pet_id = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
    verbose = {"name": "verbose", "in": "query", "schema": {"type": "boolean"}}
    body = {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
            }
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": "1"},
        "servers": [{"url": f"{url}/v1"}],
        "paths": {
            "/pets": {
                "get": {"operationId": "list_pets", "summary": "List all pets", "responses": answer},
                "post": {"operationId": "create_pet", "requestBody": body, "responses": answer},
            },
            "/pets/{id}": {
                "get": {"operationId": "get_pet", "parameters": [pet_id, verbose], "responses": answer},
                "delete": {"operationId": "delete_pet", "parameters": [pet_id], "responses": answer},
            },
        },
    }


def many(url: str, count: int) -> dict[str, Any]:
    """This many operations without arguments."""
    answer = {"200": {"description": "ok"}}
    paths = {
        f"/n/{number}": {"get": {"operationId": f"op_{number:04}", "responses": answer}} for number in range(count)
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Many", "version": "1"},
        "servers": [{"url": url}],
        "paths": paths,
    }


def secured(url: str) -> dict[str, Any]:
    """One operation that wants an API key in a header."""
    document = many(url, 1)
    document["components"] = {"securitySchemes": {"token": {"type": "apiKey", "in": "header", "name": "X-Token"}}}
    document["security"] = [{"token": []}]
    return document
