"""The kinds of manifests and their members, from the JSON Schema that `gateway schema` prints."""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.admin.openapi.reference import Block, ReferenceHeading, ReferenceParagraph, describe_object
from gateway.kinds.index import KINDS
from gateway.web.kinds.manifests import manifest_schema
from tests.site.admin_part import to_markdown

_PREFIX = "manifest_"


def kinds_part() -> str:
    """Every kind with its limit and members, then the objects that members hold."""
    return "\n".join(map(to_markdown, _blocks()))


def _blocks() -> Iterator[Block]:
    schema: Mapping[str, Any] = manifest_schema()
    limits = {kind.name.replace("_", "-"): kind.limit for kind in KINDS}
    for name in schema["properties"]["kind"]["enum"]:
        heading, *rest = describe_object(name, schema["$defs"][_PREFIX + name])
        yield heading
        if (limit := limits.get(name)) is not None:
            yield ReferenceParagraph(text=f"A tenant has at most {limit.most:,}: {limit.reason}.")
        yield from rest
    yield ReferenceHeading(level=2, text="Objects of members", anchor="objects")
    for name, described in sorted(schema["$defs"].items()):
        if not name.startswith(_PREFIX):
            yield from describe_object(name, described)
