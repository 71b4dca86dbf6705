"""A document whose operations share one large recursive grammar, as search engines have."""

from typing import Any

from tests.support.openapi import document

WORDS = "a node of the grammar, described at the length at which such documents describe each of their many members"


def grammar(*, nodes: int = 80, members: int = 14) -> dict[str, Any]:
    """Schemas that refer to each other in circles; about 2 kB each."""
    return {
        f"Node{number}": {
            "type": "object",
            "description": f"Node {number}: {WORDS}.",
            "properties": {
                f"member_{number}_{other}": {
                    "description": f"Member {other}: {WORDS}.",
                    "allOf": [{"$ref": f"#/components/schemas/Node{(number * 3 + other) % nodes}"}],
                }
                for other in range(members)
            }
            | {"boost": {"type": "number", "maximum": 10}},
        }
        for number in range(nodes)
    }


def search_api(*, searches: int = 150, plain: int = 300, **more: Any) -> dict[str, Any]:
    """A document with as many operations as Elasticsearch's, and as many that reach the whole grammar."""
    body = {
        "type": "object",
        "required": ["query", "size"],
        "properties": {
            "query": {"$ref": "#/components/schemas/Node0"},
            "size": {"type": "integer", "description": "The number of hits."},
            **{f"node_{number}": {"$ref": f"#/components/schemas/Node{number}"} for number in range(1, 20)},
        },
    }
    index = {"name": "index", "in": "path", "required": True, "schema": {"type": "string"}}
    paths: dict[str, Any] = {
        f"/{{index}}/search{number}": {
            "post": {
                "operationId": f"search_{number}",
                "summary": f"Search {number}",
                "parameters": [index, {"name": "pretty", "in": "query", "schema": {"type": "boolean"}}],
                "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
            }
        }
        for number in range(searches)
    }
    paths |= {
        f"/{{index}}/plain{number}": {"get": {"operationId": f"plain_{number}", "parameters": [index]}}
        for number in range(plain)
    }
    return document(paths, components={"schemas": grammar()}, **more)
