"""The path of a request: base path and path template, encoded, with placeholders for the parameters.

A key of `paths` should be a path alone. Some documents append a query, or query parameters in URI template syntax; both
are supported.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from urllib.parse import unquote

import msgspec

from gateway.domain.http.plans import Location
from gateway.domain.sources import FilledParameter
from gateway.openapi.document.json_access import Unusable, quote_text
from gateway.openapi.operation.servers import Server, encode_literal, has_dots

_PLACEHOLDER = re.compile(r"\{([^{}/?#]+)\}")
_QUERY_EXPRESSION = re.compile(r"\{[?&]([^{}/#]*)\}")
_COLON_SEGMENT = re.compile(r"(?<=/):([A-Za-z_][A-Za-z0-9_]*)(?=[/?#]|$)")
"""A parameter as routers of frameworks write it, `/pets/:id`. `:verb` behind a name is a part of the path."""


class PathPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The encoded path with `{n}` for parameter n, and the encoded query that is always sent."""

    path: str
    query: str


class PathTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a key of `paths`."""

    path: str
    query: str
    """The fixed part of the query."""
    pairs: Mapping[str, str]
    """Query names whose value is a placeholder, with the name in the placeholder."""
    offered: tuple[str, ...]
    """Names of optional query parameters (`{?a,b}`)."""
    filled: frozenset[str] = frozenset()
    """Placeholders in the path that stored credentials fill."""

    @property
    def placeholders(self) -> list[str]:
        """The names in the path, in order, each once."""
        return [name for name in dict.fromkeys(_PLACEHOLDER.findall(self.path)) if name not in self.filled]

    def fill(self, parameters: Sequence[FilledParameter]) -> "PathTemplate":
        """Return the template without the parameters that stored credentials fill.

        Raises:
            Unusable: the path has such a placeholder more than once.
        """
        found = _PLACEHOLDER.findall(self.path)
        filled = {one.name for one in parameters if one.location is Location.PATH and one.name in found}
        queries = {one.name for one in parameters if one.location is Location.QUERY}
        if any(found.count(name) > 1 for name in filled):
            raise Unusable("the path has a placeholder more than once that a stored credential fills")
        return msgspec.structs.replace(
            self,
            filled=frozenset(filled),
            pairs={name: value for name, value in self.pairs.items() if name not in queries},
            offered=tuple(name for name in self.offered if name not in queries),
        )


def colon_segments(text: str) -> list[str]:
    """Return the names of segments that are written like parameters of a router (`/pets/:id`), each once."""
    return list(dict.fromkeys(_COLON_SEGMENT.findall(text)))


def placeholder_mark(name: str) -> str:
    """The encoded placeholder of a path that a stored credential fills."""
    return f"%7B{encode_literal(name)}%7D"


def read_template(text: str, declared: Collection[str] = ()) -> PathTemplate:
    """Parse a path template; a segment `:name` is a placeholder if a path parameter of this name is declared.

    Raises:
        Unusable: a placeholder in the query is not the whole value of a name, or is a second value of the same name.
    """
    text = _COLON_SEGMENT.sub(lambda found: f"{{{found[1]}}}" if found[1] in declared else found[0], text)
    expressions = _QUERY_EXPRESSION.findall(text)
    path, _, query = _QUERY_EXPRESSION.sub("", text).partition("#")[0].partition("?")
    fixed: list[str] = []
    pairs: dict[str, str] = {}
    for part in query.split("&"):
        name, _, value = part.partition("=")
        whole = _PLACEHOLDER.fullmatch(value)
        if whole is None or unquote(name) in pairs or not name:
            fixed.append(part)
        else:
            pairs[unquote(name)] = whole[1]
    if any(map(_PLACEHOLDER.search, fixed)):
        raise Unusable("the path has a parameter in its query that is not a complete value")
    names = [name.rstrip("*") for expression in expressions for name in expression.split(",")]
    return PathTemplate(
        path=path,
        query="&".join(part for part in fixed if part),
        pairs=pairs,
        offered=tuple(dict.fromkeys(name for name in names if name)),
    )


def plan_path(server: Server, template: PathTemplate, indexes: Mapping[str, int]) -> PathPlan:
    """Plan the path of a template whose placeholders are filled from the parameters at these indexes.

    Raises:
        Unusable: the template does not begin with a slash, or has a dot segment.
    """
    if not template.path.startswith("/"):
        raise Unusable("the path does not begin with a slash")
    if has_dots(template.path):
        raise Unusable(f"the path {quote_text(template.path)} has a dot segment")
    queries = [part for part in (server.query, encode_literal(template.query, safe="?")) if part]
    return PathPlan(path=server.path + _fill(template.path, indexes), query="&".join(queries))


def _fill(template: str, indexes: Mapping[str, int]) -> str:
    written: list[str] = []
    end = 0
    for found in _PLACEHOLDER.finditer(template):
        name = found[1]
        slot = f"{{{indexes[name]}}}" if name in indexes else placeholder_mark(name)
        written += [encode_literal(template[end : found.start()]), slot]
        end = found.end()
    return "".join([*written, encode_literal(template[end:])])
