"""What the path of a request looks like: a path template with its base path, encoded, ready for its parameters."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gateway.openapi.servers import Server, encode_literal, has_dots
from gateway.openapi.shapes import Unusable, quote_text

_PLACEHOLDER = re.compile(r"\{([^{}/?#]+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPlan:
    """The encoded path with `{n}` for parameter n, and the encoded query that is always sent."""

    path: str
    query: str


def placeholders(template: str) -> list[str]:
    """The names in a path template, in order, each once."""
    return list(dict.fromkeys(_PLACEHOLDER.findall(template)))


def plan_path(server: Server, template: str, indexes: Mapping[str, int]) -> PathPlan:
    """The path for a template whose placeholders are fed by these parameters.

    Raises:
        Unusable: the template cannot be put after a base URL.
    """
    if not template.startswith("/"):
        raise Unusable("the path does not begin with a slash")
    before, _, _ = template.partition("#")
    literal, _, query = before.partition("?")
    if _PLACEHOLDER.search(query):
        raise Unusable("the path has a parameter behind its question mark")
    if has_dots(literal):
        raise Unusable(f"the path {quote_text(literal)} has a dot segment")
    queries = [part for part in (server.query, encode_literal(query, safe="?")) if part]
    return PathPlan(path=server.path + _fill(literal, indexes), query="&".join(queries))


def _fill(template: str, indexes: Mapping[str, int]) -> str:
    written: list[str] = []
    end = 0
    for found in _PLACEHOLDER.finditer(template):
        written += [encode_literal(template[end : found.start()]), f"{{{indexes[found[1]]}}}"]
        end = found.end()
    return "".join([*written, encode_literal(template[end:])])
