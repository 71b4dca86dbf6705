"""Response models of primitives and of tried calls."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from gateway.admin.fields import Id, Name
from gateway.admin.responses.overrides import OverrideShown
from gateway.catalog.primitives.primitives import DryRun
from gateway.catalog.primitives.queries import Listed
from gateway.domain.json_text import decode_object
from gateway.domain.primitives import Primitive
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.web.models import Page, ResponseModel

Json = Mapping[str, object]


class PrimitiveShown(ResponseModel):
    """The fields that primitives of every family have."""

    id: Id
    origin: Annotated[
        PrimitiveOrigin,
        Field(description="The origin: a source, the tenant, code, a live source, or the gateway."),
    ]
    enabled: Annotated[bool, Field(description="False: no principal can list or use the primitive.")]
    safety: Annotated[Safety, Field(description="The effective safety level.")]
    safety_reasons: Annotated[Sequence[str], Field(description="The reasons for this level.")]
    declared_safety: Annotated[Safety | None, Field(description="The declared level, if any.")]
    hides_code: Annotated[
        bool, Field(description="True if this item hides a primitive of the same name that is registered in code.")
    ]
    definition: Annotated[Json, Field(description="The definition that MCP clients see.")]
    handler: Annotated[Json | None, Field(description="The declared handler; null if none was declared.")]
    created_at: Annotated[datetime | None, Field(description="The time of creation.")]
    updated_at: Annotated[datetime | None, Field(description="The time of the last change.")]


class DocumentShown(ResponseModel):
    """An imported tool as generated from its document."""

    safety: Annotated[
        Safety, Field(description="The level that the document declares, or that the HTTP method implies.")
    ]
    definition: Annotated[Json, Field(description="The MCP object that clients see.")]

    @classmethod
    def of(cls, tool: Tool) -> Self:
        """Build the response from a tool without its override."""
        return cls(safety=tool.safety, definition=decode_object(tool.definition))


class ToolShown(PrimitiveShown):
    """A tool: imported, the tenant's own, registered by code, of a live source, or built in."""

    name: Name
    source: Annotated[str, Field(description="The name of the tool's source or live source; empty if none.")]
    operation: Annotated[str, Field(description="The method and path of the tool's operation; empty if none.")]
    hidden: Annotated[
        bool, Field(description="True: clients do not see the tool; handlers and `call_endpoint` can call it.")
    ]
    override: Annotated[OverrideShown | None, Field(description="The override; null if there is none.")]
    document: Annotated[
        DocumentShown | None, Field(description="The tool as generated from the document; null without an override.")
    ]

    @classmethod
    def of(cls, listed: Listed) -> Self:
        """Build the response from a listed tool."""
        item = listed.item
        return cls(
            **_shared_fields(listed),
            name=item.name,
            source=item.source_name,
            operation=item.identity if isinstance(item, Tool) else "",
            hidden=listed.is_hidden,
            override=None if listed.override is None else OverrideShown.of(listed.override),
            document=None if listed.document is None else DocumentShown.of(listed.document),
        )


class PromptShown(PrimitiveShown):
    """A prompt."""

    name: Name

    @classmethod
    def of(cls, listed: Listed) -> Self:
        """Build the response from a listed prompt."""
        return cls(**_shared_fields(listed), name=listed.name)


class ResourceShown(PrimitiveShown):
    """A resource."""

    uri: Annotated[str, Field(description="The URI of the resource.")]

    @classmethod
    def of(cls, listed: Listed) -> Self:
        """Build the response from a listed resource."""
        return cls(**_shared_fields(listed), uri=listed.name)


class TemplateShown(PrimitiveShown):
    """A resource template."""

    uri_template: Annotated[str, Field(description="The URI template (RFC 6570).")]

    @classmethod
    def of(cls, listed: Listed) -> Self:
        """Build the response from a listed resource template."""
        return cls(**_shared_fields(listed), uri_template=listed.name)


class PrimitiveValid(ResponseModel):
    """The primitive that a request to store it would create; nothing was stored."""

    valid: Annotated[Literal[True], Field(description="Always true; an invalid declaration is refused.")] = True
    name: Annotated[str, Field(description="The name or URI of the primitive.")]
    safety: Annotated[Safety, Field(description="The safety level.")]
    safety_reasons: Annotated[Sequence[str], Field(description="The reasons for this level.")]
    replaces: Annotated[
        str | None, Field(description="The id of the existing primitive with this name; null if there is none.")
    ]
    definition: Annotated[Json, Field(description="The definition that MCP clients would see.")]

    @classmethod
    def of(cls, tried: DryRun) -> Self:
        """Build the response from a validated primitive."""
        made = tried.listed.item
        return cls(
            name=made.name,
            safety=made.safety,
            safety_reasons=made.safety_reasons,
            replaces=tried.replaces,
            definition=decode_object(made.definition),
        )


class TriedRequest(ResponseModel):
    """The request of a call, before credentials are added."""

    summary: Annotated[str, Field(description="A readable summary of the call, with the requests of its steps.")]
    method: Annotated[str | None, Field(description="The HTTP method.")]
    url: Annotated[str | None, Field(description="The URL; null if no request is sent.")]
    headers: Annotated[Sequence[tuple[str, str]], Field(description="The headers, without credentials.")]
    body: Annotated[str | None, Field(description="The body as text; for other content, its size.")]


class TrialShown(ResponseModel):
    """A tried call: the request and the result."""

    request: Annotated[TriedRequest, Field(description="The request of the call; an error may have prevented it.")]
    result: Annotated[Json, Field(description="The MCP result object.")]


class ToolPage(Page[ToolShown]):
    """One page of a tenant's tools."""


class PromptPage(Page[PromptShown]):
    """One page of a tenant's prompts."""


class ResourcePage(Page[ResourceShown]):
    """One page of a tenant's resources."""


class TemplatePage(Page[TemplateShown]):
    """One page of a tenant's resource templates."""


def _shared_fields(listed: Listed) -> dict[str, Any]:
    """Return the fields that primitives of all families have."""
    item = listed.item
    stored = item if isinstance(item, Primitive) else None
    return {
        "id": listed.id,
        "origin": item.origin,
        "enabled": listed.is_enabled,
        "safety": item.safety,
        "safety_reasons": item.safety_reasons,
        "declared_safety": _declared_safety(listed),
        "hides_code": listed.hides_code,
        "definition": decode_object(item.definition),
        "handler": decode_object(item.handler) if stored is not None and stored.handler else None,
        "created_at": None if stored is None else stored.created_at,
        "updated_at": None if stored is None else stored.updated_at,
    }


def _declared_safety(listed: Listed) -> Safety | None:
    if isinstance(listed.item, Primitive):
        return listed.item.override
    return None if listed.override is None else listed.override.changes.safety
