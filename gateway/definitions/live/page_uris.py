"""URIs of pages (MCP Apps, SEP-1865) of live sources: each source has its own place below `ui://`.

A server names its pages as it likes, so two servers may use one URI. The gateway lists the page `ui://charts/view` of
the source `bank` as `ui://bank/charts/view`, and a tool can only name a page of its own source.
"""

from collections.abc import Mapping
from typing import Final

from gateway.definitions.live.limits import MAX_REWRITTEN_DEPTH
from gateway.domain.json_access import as_list, as_object

SCHEME: Final = "ui://"
_OWN_KEYS: Final = ("ui/resourceUri", "openai/outputTemplate")
"""Members of `_meta` that name the page of a tool, beside `ui.resourceUri`."""


def is_page(uri: str) -> bool:
    """True if the URI has the scheme of pages, in any letter case."""
    return uri[:3].lower() == "ui:"


def shown_uri(source: str, uri: str) -> str:
    """Return the URI under which clients see a URI of the source: another one for pages, else the same.

    Raises:
        ValueError: it has the scheme of pages, but names none.
    """
    if not is_page(uri):
        return uri
    if not uri.startswith(SCHEME) or uri == SCHEME:
        raise ValueError("the URI of a page has to begin with ui:// and to name the page")
    return f"{SCHEME}{source}/{uri[len(SCHEME) :]}"  # guard: live-page-of-its-source


def shown_meta(source: str, value: object, depth: int = 0) -> object:
    """Return a value of `_meta` in which each URI of a page is the one that clients see.

    Members of `_meta` that name pages are not only those of MCP Apps, so all strings are read. Values deeper than 64
    levels are dropped.
    """
    if depth > MAX_REWRITTEN_DEPTH:
        return None
    if isinstance(value, str):
        start = value.lstrip()
        is_uri = start[: len(SCHEME)].lower() == SCHEME
        return f"{SCHEME}{source}/{start[len(SCHEME) :]}" if is_uri else value  # guard: live-page-in-meta
    if (members := as_object(value)) is not None:
        return {name: shown_meta(source, part, depth + 1) for name, part in members.items()}
    if (items := as_list(value)) is not None:
        return [shown_meta(source, item, depth + 1) for item in items]
    return value


def pages_of(definition: Mapping[str, object]) -> frozenset[str]:
    """Return the URIs of the pages that a tool names, as its source names them."""
    meta = as_object(definition.get("_meta")) or {}
    named = [meta.get(name) for name in _OWN_KEYS] + [(as_object(meta.get("ui")) or {}).get("resourceUri")]
    return frozenset(uri for uri in named if isinstance(uri, str) and uri.startswith(SCHEME) and uri != SCHEME)


def is_for_pages(definition: Mapping[str, object]) -> bool:
    """True if pages may call a tool: `visibility` of MCP Apps is absent, or contains `app`."""
    ui = as_object((as_object(definition.get("_meta")) or {}).get("ui")) or {}
    visibility = as_list(ui.get("visibility"))
    return visibility is None or "app" in visibility
