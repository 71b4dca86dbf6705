"""Snapshots for tests that need no database: what a tenant would have, written down."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.catalog.snapshots.snapshot import Snapshot
from gateway.domain.identifiers import PrimitiveId, SourceId, TenantId
from gateway.domain.primitives import Family, Primitive
from gateway.domain.tenancy.policy import Policy, Safety
from gateway.domain.tenancy.profiles import Profile
from gateway.domain.tools import PrimitiveOrigin, Tool

STATIC: Mapping[Family, dict[str, Any]] = {
    Family.TOOL: {"kind": "static", "content": [{"type": "text", "text": "x"}]},
    Family.RESOURCE: {"kind": "template", "text": "x", "mimeType": "text/plain"},
    Family.TEMPLATE: {"kind": "template", "text": "{{ id }}", "mimeType": "text/plain"},
    Family.PROMPT: {"kind": "template", "text": "x"},
}
"""A handler for each family."""


def imported(name: str, *, method: str = "GET", source: str = "api", tags: tuple[str, ...] = ()) -> Tool:
    """An imported operation."""
    definition: dict[str, Any] = {
        "name": name,
        "description": name,
        "inputSchema": {"type": "object", "properties": {}},
    }
    return Tool(
        name=name,
        definition=json.dumps(definition).encode(),
        safety=Safety.SAFE if method == "GET" else Safety.MODERATE,
        safety_reasons=(),
        origin=PrimitiveOrigin.SOURCE,
        source=SourceId(f"src_{source}"),
        source_name=source,
        identity=f"{method} /{name}",
        plan=json.dumps({"method": method, "origin": "http://127.0.0.1:1", "path": f"/{name}"}).encode(),
        tags=tags,
    )


def custom(
    name: str, handler: Mapping[str, Any] | None = None, *, origin: PrimitiveOrigin = PrimitiveOrigin.CUSTOM
) -> Tool:
    """A tool of the tenant's own, or of code."""
    definition: dict[str, Any] = {
        "name": name,
        "description": name,
        "inputSchema": {"type": "object", "properties": {}},
    }
    return Tool(
        name=name,
        definition=json.dumps(definition).encode(),
        safety=Safety.SAFE,
        safety_reasons=(),
        origin=origin,
        primitive=PrimitiveId(f"tol_{name}"),
        handler=b"" if origin is PrimitiveOrigin.CODE else json.dumps(handler or STATIC[Family.TOOL]).encode(),
    )


def primitive(
    family: Family,
    name: str,
    handler: Mapping[str, Any] | None = None,
    *,
    safety: Safety = Safety.SAFE,
    origin: PrimitiveOrigin = PrimitiveOrigin.CUSTOM,
) -> Primitive:
    """A resource, resource template or prompt."""
    members: dict[str, Any] = {"name": name}
    if family is Family.RESOURCE:
        members = {"uri": name, "name": name, "mimeType": "text/plain"}
    elif family is Family.TEMPLATE:
        members = {"uriTemplate": name, "name": name, "mimeType": "text/plain"}
    return Primitive(
        id=PrimitiveId(f"{family}_{name}"),
        family=family,
        name=name,
        definition=json.dumps(members).encode(),
        handler=b"" if origin is PrimitiveOrigin.CODE else json.dumps(handler or STATIC[family]).encode(),
        safety=safety,
        origin=origin,
    )


def snapshot(
    *,
    tools: Sequence[Tool] = (),
    primitives: Sequence[Primitive] = (),
    profiles: Sequence[Profile] = (),
    policy: Policy | None = None,
    tenant: str = "ten_a",
    **more: Any,
) -> Snapshot:
    """One revision of a tenant that has these."""
    listed = tuple(sorted(tools, key=lambda tool: tool.name))

    def of(family: Family) -> tuple[Primitive, ...]:
        found = (each for each in primitives if each.family is family)
        return tuple(sorted(found, key=lambda each: each.name))

    members: dict[str, Any] = {
        "tenant": TenantId(tenant),
        "slug": "acme",
        "revision": 1,
        "policy": policy or Policy(),
        "tools": listed,
        "by_name": {tool.name: tool for tool in listed},
        "resources": of(Family.RESOURCE),
        "templates": of(Family.TEMPLATE),
        "prompts": of(Family.PROMPT),
        "profiles": {profile.name: profile for profile in profiles},
    }
    return Snapshot(**{**members, **more})
