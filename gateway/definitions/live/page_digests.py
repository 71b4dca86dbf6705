"""Digests of the pages (MCP Apps) of live sources.

A page runs in the client and acts for its user, so its contents are reviewed like a definition: the digest is part of
the page's definition, and contents with another digest are not passed on.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import orjson

from gateway.domain.json_access import as_list, as_object

MEMBER: Final = "gateway/page"
"""Member of `_meta` of a page's definition, with its digest."""


def page_digest(result: Mapping[str, Any]) -> str:
    """Return the digest of the contents in a result of `resources/read`; empty if there are none.

    The URI of the contents does not count.
    """
    items = as_list(result.get("contents"))
    contents = [as_object(item) for item in items or ()]
    members = [{name: value for name, value in one.items() if name != "uri"} for one in contents if one is not None]
    if not members:
        return ""
    try:
        raw = orjson.dumps(members, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError, RecursionError):
        return ""
    return hashlib.sha256(raw).hexdigest()[:32]


def with_digest(definition: Mapping[str, object], digest: str) -> Mapping[str, object]:
    """Return the definition of a page with the digest of its contents; unchanged without one."""
    if not digest:
        return definition
    return {**definition, "_meta": {**(as_object(definition.get("_meta")) or {}), MEMBER: digest}}


def digest_in(definition: Mapping[str, object]) -> str:
    """Return the digest in a page's definition; empty if there is none."""
    digest = (as_object(definition.get("_meta")) or {}).get(MEMBER)
    return digest if isinstance(digest, str) else ""
