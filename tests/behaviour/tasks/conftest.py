"""A tenant with slow, asking and failing tools, and its client."""

from typing import Any

import pytest

from tests.support.documents import pets
from tests.support.gateway import RunningGateway
from tests.support.primitives import add, static_tool, tool
from tests.support.stand import database, gateway, own_stand, redis_url, stand, upstream
from tests.support.stand import package_stand as common_stand
from tests.support.tasks import TaskClient
from tests.support.upstream import RecordingUpstream

__all__ = ["common_stand", "database", "gateway", "own_stand", "redis_url", "stand", "upstream"]

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
REQUIRED = {"execution": {"taskSupport": "required"}}


def ask(key: str) -> dict[str, Any]:
    """A step that asks for a name."""
    return {"ask": {"key": key, "message": f"Which {key}?", "schema": NAME}, "as": key}


def tools_of(upstream: RecordingUpstream) -> dict[str, dict[str, Any]]:
    """Tools of every kind that matters to tasks, by name."""
    get, post = ({"http": {"method": method, "url": f"{upstream.url}/slow"}} for method in ("GET", "POST"))
    said = {"return": {"text": "{{ first.content.name }}"}}
    both = {"return": {"text": "{{ first.content.name }} {{ second.content.name }}"}}
    steps: dict[str, list[dict[str, Any]]] = {
        "asks": [ask("first"), said],
        "asks_both": [{"gather": [ask("first"), ask("second")]}, both],
        "asks_twice": [ask("first"), ask("second"), both],
        "reads": [get, {"return": {"text": "read"}}],
        "writes": [post, {"return": {"text": "written"}}],
        "writes_then_asks": [post, ask("first"), said],
        "roots": [{"roots": {"key": "places"}, "as": "places"}, {"return": {"text": "{{ places | size }}"}}],
        "errs": [{"return": {"text": "no", "isError": True}}],
    }
    first = {"kind": "steps", "steps": [ask("first"), get, said]}
    forbidden = {"execution": {"taskSupport": "forbidden"}}
    slow = {"kind": "steps", "steps": [get, {"return": {"text": "read"}}]}
    return {
        **{name: tool(name, {"kind": "steps", "steps": listed}, definition=REQUIRED) for name, listed in steps.items()},
        "asks_first": tool("asks_first", first),
        "quick": static_tool("quick"),
        "never_a_task": tool("never_a_task", slow, definition=forbidden),
    }


async def furnish(gateway: RunningGateway, slug: str, upstream: RecordingUpstream) -> None:
    """A tenant with the pets document and all these tools."""
    await gateway.create_tenant(slug)
    await gateway.import_document(slug, pets(upstream.url))
    for declared in tools_of(upstream).values():
        await add(gateway, slug, "tools", declared)


@pytest.fixture
async def client(gateway: RunningGateway, upstream: RecordingUpstream) -> TaskClient:
    """A client of the tenant that accepts tasks and answers forms."""
    await gateway.create_tenant("acme")
    await gateway.import_document("acme", pets(upstream.url))
    key = await gateway.create_key("acme", subject="ada")
    return TaskClient(gateway, "acme", key, tools=tools_of(upstream))
