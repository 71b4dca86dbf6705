"""The kinds that bring primitives from outside."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from gateway.domain.live_sources import AttachmentState, LiveKind, LiveSource
from gateway.domain.members.formats import TOOL_NAME
from gateway.domain.overrides import Override, OverrideStatus
from gateway.domain.sources import Exposure, Source, SourceStatus
from gateway.domain.updates.managed_sources import ManagedSource
from gateway.kinds.kind import Kind, Limit, ListFilter


def _live_texts(source: LiveSource) -> Iterable[str]:
    """Return only URL and address of the settings: others may be secret, and a search would confirm guesses."""
    places = (str(source.settings[name]) for name in ("url", "address") if name in source.settings)
    return (source.name, source.status.title, *places)


LIVE_SOURCE = Kind(
    of=LiveSource,
    stem="LiveSource",
    name="live_source",
    plural="live-sources",
    id_prefix="liv",
    about="an editor, an MCP server or a program whose primitives exist while it is attached",
    limit=Limit(most=50, reason="each one has connections and memory on a replica"),
    example={
        "name": "wiki",
        "kind": "mcp",
        "settings": {"url": "https://wiki.example/mcp"},
        "prefix": "wiki",
        "exclude": ["admin_*"],
        "safety": {"search": "safe"},
    },
    texts=_live_texts,
    filters={
        "kind": ListFilter(type=LiveKind, about="Only live sources of this kind.", value=lambda one: one.kind),
        "state": ListFilter(
            type=AttachmentState, about="Only live sources in this state.", value=lambda one: one.status.state
        ),
        "enabled": ListFilter(
            type=bool,
            about="Only live sources that are enabled (true) or disabled (false).",
            value=lambda one: one.enabled,
        ),
    },
)

SOURCE = Kind(
    has_collection=False,
    of=Source,
    stem="Source",
    name="source",
    plural="sources",
    id_prefix="src",
    about="an OpenAPI document whose operations are tools",
    limit=Limit(most=10_000, reason="the policy of the tenant bounds its tools, and each source has one"),
    example={"name": "pets", "url": "https://pets.example/openapi.json", "prefix": "pets"},
    texts=lambda one: (one.name, one.title, one.url),
    status=SourceStatus,
    filters={
        "expose": ListFilter(
            type=Exposure, about="Only sources that are exposed in this form.", value=lambda one: one.expose
        )
    },
)
"""The options of sources. It is not in `KINDS`: only an import makes a source, and versions have verbs of their own."""

MANAGED_SOURCE: Kind[Any] = replace(
    SOURCE,
    of=ManagedSource,
    example={"name": "pets", "url": "https://pets.example/openapi.json", "refresh": "gateway", "prefix": "pets"},
    removes=("override",),
)
"""A source in manifests: its options, and the origin of its document."""

OVERRIDE = Kind(
    of=Override,
    stem="ToolOverride",
    name="override",
    plural="overrides",
    id_prefix="ovr",
    about="a tenant's changes of an imported tool, which each import keeps",
    limit=None,
    form=TOOL_NAME,
    name_about="The name of the tool; another name than that of its document renames it.",
    owner=lambda one: f"source:{one.source}",
    example={
        "name": "list_pets",
        "source": "pets",
        "operation": "GET /pets",
        "title": "List the pets",
        "safety": "moderate",
    },
    texts=lambda one: (one.name, one.operation, one.title, one.description),
    filters={
        "source": ListFilter(
            type=str, about="Only overrides of tools of the source of this name.", value=lambda one: one.source
        ),
        "waiting": ListFilter(
            type=bool,
            about="Only overrides whose operation the document lacks (true) or has (false).",
            value=lambda one: one.tool is None,
        ),
    },
    status=OverrideStatus,
    is_renamed=True,
    actions={"create": "tool.override", "update": "tool.override", "delete": "tool.reset"},
)
