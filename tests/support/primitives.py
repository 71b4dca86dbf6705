"""A tenant's primitives of every family and kind of handler, as they are sent to the admin API."""

from collections.abc import Mapping
from typing import Any

from tests.support.gateway import RunningGateway

OPEN: dict[str, Any] = {"type": "object", "properties": {}}
NAMED: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}


def tool(name: str, handler: Mapping[str, Any], *, schema: Mapping[str, Any] = OPEN, **more: Any) -> dict[str, Any]:
    """A tool as it is sent."""
    definition = {"name": name, "description": f"The tool {name}.", "inputSchema": schema}
    return {"definition": {**definition, **more.pop("definition", {})}, "handler": handler, **more}


def static_tool(name: str, text: str = "hello") -> dict[str, Any]:
    """A tool that always answers the same."""
    return tool(name, {"kind": "static", "content": [{"type": "text", "text": text}]})


def resource(uri: str, handler: Mapping[str, Any], **definition: Any) -> dict[str, Any]:
    """A resource as it is sent."""
    return {"definition": {"uri": uri, "name": uri.rpartition("/")[2] or uri, **definition}, "handler": handler}


def text_resource(uri: str, text: str = "hello") -> dict[str, Any]:
    """A resource that always reads the same."""
    handler = {"kind": "static", "contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]}
    return resource(uri, handler, mimeType="text/plain")


def template(uri_template: str, handler: Mapping[str, Any], **definition: Any) -> dict[str, Any]:
    """A resource template as it is sent."""
    return {"definition": {"uriTemplate": uri_template, "name": "rows", **definition}, "handler": handler}


def prompt(name: str, handler: Mapping[str, Any], **definition: Any) -> dict[str, Any]:
    """A prompt as it is sent."""
    return {"definition": {"name": name, **definition}, "handler": handler}


def text_prompt(name: str, text: str = "hello") -> dict[str, Any]:
    """A prompt of one message that is always the same."""
    return prompt(name, {"kind": "template", "text": text})


async def add(gateway: RunningGateway, slug: str, nouns: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Store one; the answer of the admin API."""
    answer = await gateway.admin.post(f"/tenants/{slug}/{nouns}", json=body)
    assert answer.status_code == 201, answer.text
    stored: dict[str, Any] = answer.json()
    return stored


async def add_profile(gateway: RunningGateway, slug: str, name: str, **rules: Any) -> None:
    """Store a profile."""
    await add(gateway, slug, "profiles", {"name": name, **rules})
