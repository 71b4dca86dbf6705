"""Response models of primitives and of tried calls."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Self

import msgspec
from pydantic import Field

from gateway.admin.fields import Id, Name
from gateway.admin.responses.models import Page, ResponseModel
from gateway.admin.responses.overrides import OverrideShown
from gateway.catalog.primitives.primitives import Tried
from gateway.catalog.primitives.queries import Listed
from gateway.domain.primitives import Primitive
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tools import PrimitiveOrigin, Tool

_decode = msgspec.json.Decoder(dict[str, object]).decode

Json = Mapping[str, object]


class PrimitiveShown(ResponseModel):
    """The fields that primitives of every family have."""

    id: Id
    origin: Annotated[
        PrimitiveOrigin,
        Field(description="Where it comes from: a source, the tenant, code, a live source, the gateway."),
    ]
    enabled: Annotated[bool, Field(description="Whether clients have it.")]
    safety: Annotated[Safety, Field(description="The level in force.")]
    safety_reasons: Annotated[Sequence[str], Field(description="Why it has this level.")]
    declared_safety: Annotated[Safety | None, Field(description="The level that was declared, if one was.")]
    hides_code: Annotated[bool, Field(description="Whether code registered one of this name, which this one hides.")]
    definition: Annotated[Json, Field(description="As MCP clients see it.")]
    handler: Annotated[Json | None, Field(description="What runs it; null where it was not declared.")]
    created_at: Annotated[datetime | None, Field(description="When it was made.")]
    updated_at: Annotated[datetime | None, Field(description="When it was changed last.")]


class DocumentShown(ResponseModel):
    """An imported tool as generated from its document."""

    safety: Annotated[
        Safety, Field(description="The level that the document asks for, or that follows from the method.")
    ]
    definition: Annotated[Json, Field(description="The protocol's own object, as MCP clients see it.")]

    @classmethod
    def of(cls, tool: Tool) -> Self:
        """Build the response from a tool without its override."""
        return cls(safety=tool.safety, definition=_decode(tool.definition))


class ToolShown(PrimitiveShown):
    """A tool: imported, the tenant's own, registered by code, of a live source, or built in."""

    name: Name
    source: Annotated[str, Field(description="Name of its source or live source; empty without one.")]
    operation: Annotated[str, Field(description="Method and path of the operation behind it; empty without one.")]
    hidden: Annotated[bool, Field(description="Not listed for clients; handlers and `call_endpoint` may call it.")]
    override: Annotated[OverrideShown | None, Field(description="The members that replace those of the document.")]
    document: Annotated[DocumentShown | None, Field(description="The document's own members, if there is an override.")]

    @classmethod
    def of(cls, listed: Listed) -> Self:
        """Build the response from a listed tool."""
        item = listed.item
        return cls(
            **_facts(listed),
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
        return cls(**_facts(listed), name=listed.name)


class ResourceShown(PrimitiveShown):
    """A resource."""

    uri: Annotated[str, Field(description="The URI of the resource.")]

    @classmethod
    def of(cls, listed: Listed) -> Self:
        """Build the response from a listed resource."""
        return cls(**_facts(listed), uri=listed.name)


class TemplateShown(PrimitiveShown):
    """A resource template."""

    uri_template: Annotated[str, Field(description="The URI template (RFC 6570).")]

    @classmethod
    def of(cls, listed: Listed) -> Self:
        """Build the response from a listed resource template."""
        return cls(**_facts(listed), uri_template=listed.name)


class PrimitiveValid(ResponseModel):
    """The primitive that a request to store it would create; nothing was stored."""

    valid: Annotated[Literal[True], Field(description="Always true: what is not valid is refused.")] = True
    name: Annotated[str, Field(description="What it would be addressed by.")]
    safety: Annotated[Safety, Field(description="The safety level.")]
    safety_reasons: Annotated[Sequence[str], Field(description="Why it has this level.")]
    replaces: Annotated[str | None, Field(description="The id of the primitive of this name that there is.")]
    definition: Annotated[Json, Field(description="As MCP clients would see it.")]

    @classmethod
    def of(cls, tried: Tried) -> Self:
        """Build the response from a validated primitive."""
        made = tried.listed.item
        return cls(
            name=made.name,
            safety=made.safety,
            safety_reasons=made.safety_reasons,
            replaces=tried.replaces,
            definition=_decode(made.definition),
        )


class TriedRequest(ResponseModel):
    """The request of a call, before credentials are added."""

    summary: Annotated[str, Field(description="The call as a person reads it; of steps, with the requests they make.")]
    method: Annotated[str | None, Field(description="The HTTP method.")]
    url: Annotated[str | None, Field(description="The URL; null where no request is sent.")]
    headers: Annotated[Sequence[tuple[str, str]], Field(description="Names and values, without credentials.")]
    body: Annotated[str | None, Field(description="As text; what is not text is shown by its size.")]


class TrialShown(ResponseModel):
    """A tried call: the request and the result."""

    request: Annotated[TriedRequest, Field(description="What was sent.")]
    result: Annotated[Json, Field(description="The protocol's result object.")]


class ToolPage(Page[ToolShown]):
    """One page of a tenant's tools."""


class PromptPage(Page[PromptShown]):
    """One page of a tenant's prompts."""


class ResourcePage(Page[ResourceShown]):
    """One page of a tenant's resources."""


class TemplatePage(Page[TemplateShown]):
    """One page of a tenant's resource templates."""


def _facts(listed: Listed) -> dict[str, Any]:
    """Return the fields that primitives of every family have."""
    item = listed.item
    stored = item if isinstance(item, Primitive) else None
    return {
        "id": listed.id,
        "origin": item.origin,
        "enabled": listed.is_enabled,
        "safety": item.safety,
        "safety_reasons": item.safety_reasons,
        "declared_safety": _declared(listed),
        "hides_code": listed.hides_code,
        "definition": _decode(item.definition),
        "handler": _decode(item.handler) if stored is not None and stored.handler else None,
        "created_at": None if stored is None else stored.created_at,
        "updated_at": None if stored is None else stored.updated_at,
    }


def _declared(listed: Listed) -> Safety | None:
    if isinstance(listed.item, Primitive):
        return listed.item.override
    return None if listed.override is None else listed.override.changes.safety
