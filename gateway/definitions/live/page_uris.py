"""URIs of pages (MCP Apps, SEP-1865) of live sources: each source has its own place below `ui://`.

A server names its pages as it likes, so two servers may use one URI. The gateway lists the page `ui://charts/view` of
the source `bank` as `ui://bank/charts/view`, and a tool can only name a page of its own source.
"""

from typing import Final

SCHEME: Final = "ui://"


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
    if uri[: len(SCHEME)].lower() != SCHEME or len(uri) == len(SCHEME):
        raise ValueError("the URI of a page has to begin with ui:// and to name the page")
    return f"{SCHEME}{source}/{uri[len(SCHEME) :]}"  # guard: live-page-of-its-source


def remote_uri(source: str, uri: str) -> str:
    """Return the URI at the source for a URI that clients see."""
    own = f"{SCHEME}{source}/"
    return f"{SCHEME}{uri[len(own) :]}" if uri.startswith(own) else uri
