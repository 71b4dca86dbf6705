"""The results of the query tools: pure functions of the caller's views and of already validated arguments."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar, cast

import msgspec

from gateway.domain.json_access import as_list, as_object
from gateway.domain.json_text import decode_json
from gateway.openapi.query.api import ApiView
from gateway.openapi.query.limits import (
    DEFAULT_LIMIT,
    MAX_ANSWER_BYTES,
    MAX_DEPTH,
    MAX_PAGE_BYTES,
    MAX_SHOWN_LENGTH,
    MAX_SUGGESTED,
    SEPARATOR_BYTES,
)
from gateway.openapi.query.outline import OutlinedOperation, SchemaEntry
from gateway.openapi.query.references import Resolver
from gateway.openapi.query.search import Hit, Ranking
from gateway.openapi.query.sizes import measure
from gateway.openapi.query.truncation import find_part, fit, skip
from gateway.openapi.query.words import suggest

Answer = dict[str, object]
_Item = TypeVar("_Item")


class QueryRefused(Exception):
    """The named item does not exist or is ambiguous; `suggestions` contains likely names."""

    def __init__(self, message: str, suggestions: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.suggestions = suggestions


class QueryCall(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of one call, the offset of its page, and the function `mint` that makes the next page's cursor."""

    arguments: Mapping[str, object]
    offset: int = 0
    mint: Callable[[int], str] = str
    full_input: bytes | None = None
    """The full input schema of the named operation, if its tool lists a shortened one."""

    @property
    def limit(self) -> int:
        """The maximum number of items requested."""
        return cast("int", self.arguments.get("limit", DEFAULT_LIMIT))

    def text(self, name: str) -> str | None:
        """Return an argument if it is a string, else None."""
        value = self.arguments.get(name)
        return value if isinstance(value, str) else None

    @property
    def depth(self) -> int:
        """The number of levels of nested references to resolve."""
        depth = self.arguments.get("depth")
        if isinstance(depth, int):
            return depth
        return MAX_DEPTH if self.arguments.get("resolve") is True else 0


Answering = Callable[[Sequence[ApiView], QueryCall], Answer]


def describe_api(views: Sequence[ApiView], query: QueryCall) -> Answer:
    """Describe a source; if there are several, each of them."""
    del query
    if len(views) == 1:
        return _api_description(views[0], MAX_ANSWER_BYTES)
    return {"sources": [_api_description(view, MAX_ANSWER_BYTES // max(len(views), 1)) for view in views]}


def list_endpoints(views: Sequence[ApiView], query: QueryCall) -> Answer:
    """List operations in the order of the documents, optionally only those with a given method or tag."""
    method, tag = query.text("method"), query.text("tag")
    found = [
        (view, endpoint)
        for view in views
        for endpoint in view.endpoints
        if (method is None or endpoint.method == method.upper())
        and (tag is None or tag.casefold() in {known.casefold() for known in endpoint.tags})
    ]
    shown, page = _page(found, query, lambda item: _listed(*item, views))
    return {"endpoints": shown, **page}


def search_endpoints(views: Sequence[ApiView], query: QueryCall) -> Answer:
    """Find operations that match the words of a query, the best match first."""
    where = query.text("searchIn") or "all"
    field = None if where == "all" else where
    ranking = Ranking([view.api.words for view in views], query.text("query") or "", field)

    def show(position: int) -> Answer:
        place, hit = ranking.hit(position)
        return _hit(views[place], hit, views)

    shown, page = _page(ranking.best([view.shown for view in views]), query, show)
    return {"results": shown, **page}


def get_endpoint_details(views: Sequence[ApiView], query: QueryCall) -> Answer:
    """Return everything that applies to one operation."""
    view, endpoint = find_named(views, query.arguments)
    resolver = Resolver(view.api.outline)
    details = _open(cast("Answer", decode_json(endpoint.details)), resolver)
    tool = view.tools.get(endpoint.identity)
    head: Answer = {"source": view.source, "operation": endpoint.identity}
    head |= {"path": endpoint.path, "method": endpoint.method}
    detail = _message(
        summary=endpoint.summary,
        description=endpoint.description,
        operationId=endpoint.operation_id,
        tags=list(endpoint.tags),
        deprecated=endpoint.deprecated,
    )
    whole: Answer = head | detail | cast("Answer", resolver.resolve(details, query.depth))
    if tool is not None:
        listed: Answer = decode_json(tool.definition)
        full: object = listed["inputSchema"] if query.full_input is None else decode_json(query.full_input)
        whole |= {"tool": view.tool_name(endpoint), "inputSchema": full}
    return _cut_to_size(whole, head, query)


def list_schemas(views: Sequence[ApiView], query: QueryCall) -> Answer:
    """List named schemas in the order of the documents."""
    found = [(view, entry) for view in views for entry in view.schemas]
    shown, page = _page(found, query, lambda item: _entry(*item, views))
    return {"schemas": shown, **page}


def get_schema_details(views: Sequence[ApiView], query: QueryCall) -> Answer:
    """Return one schema, the schemas that it references, and the schemas and operations that reference it."""
    view, entry = _find_schema(views, query.text("name") or "")
    schema = Resolver(view.api.outline).resolve(decode_json(entry.schema), query.depth, within=entry.name)
    seen = {known.name for known in view.schemas}
    users = view.api.dependants(entry.name) & seen
    callers = [
        endpoint.identity
        for endpoint in view.endpoints
        if entry.name in endpoint.schemas or not users.isdisjoint(endpoint.schemas)
    ]
    head: Answer = {"source": view.source, "name": entry.name}
    whole = head | {
        "schema": schema,
        "dependencies": sorted(view.api.dependencies([entry.name]) & seen),
        "usedBy": [*sorted(users), *callers],
    }
    return _cut_to_size(whole, head, query)


ANSWERS: Mapping[str, Answering] = {
    "get_api_info": describe_api,
    "list_endpoints": list_endpoints,
    "search_endpoints": search_endpoints,
    "get_endpoint_details": get_endpoint_details,
    "list_schemas": list_schemas,
    "get_schema_details": get_schema_details,
}
"""The function of each of the six read-only tools."""


def choose_views(views: Sequence[ApiView], source: str | None) -> Sequence[ApiView]:
    """Return the view of the source with this name, or all views.

    Raises:
        QueryRefused: there is no such source.
    """
    if source is None:
        return views
    found = [view for view in views if view.source == source]
    if not found:
        names = [view.source for view in views]
        raise QueryRefused(f"Source not found: {_cut(source)}", suggest(source, names) or names[:MAX_SUGGESTED])
    return found


def find_named(views: Sequence[ApiView], arguments: Mapping[str, object]) -> tuple[ApiView, OutlinedOperation]:
    """Return the operation that the arguments name: by `operation`, by `path` and `method`, or by both consistently.

    Raises:
        QueryRefused: they name none, several, or two different ones.
    """
    named, path, method = (arguments.get(name) for name in ("operation", "path", "method"))
    keys = [named] if isinstance(named, str) else []
    if isinstance(path, str) and isinstance(method, str):
        keys.append(f"{method} {path}")
    elif not keys:
        raise QueryRefused("Give the endpoint: `operation` from a list, or `path` and `method`")
    found = [find_endpoint(views, key) for key in keys]
    if len({(view.source, endpoint.identity) for view, endpoint in found}) > 1:
        shown = [endpoint.identity for _, endpoint in found]
        raise QueryRefused("`operation` and `path` with `method` are different endpoints; give one of the two", shown)
    return found[0]


def find_endpoint(views: Sequence[ApiView], key: str) -> tuple[ApiView, OutlinedOperation]:
    """Return the one operation with this name. A tool name, which is unique, takes precedence over operationIds.

    Raises:
        QueryRefused: there is none, or there are several.
    """
    found = [(view, endpoint) for view in views for endpoint in view.find(key)]
    for matches in (found, [(view, endpoint) for view, endpoint in found if view.is_named(endpoint, key)]):
        if len(matches) == 1:
            return matches[0]
    if found:
        shown = [f"{view.source}: {endpoint.identity}" for view, endpoint in found[:MAX_SUGGESTED]]
        raise QueryRefused(f"Several operations match {_cut(key)}; give the source, or method and path", shown)
    names = {name for view in views for endpoint in view.endpoints for name in _names(view, endpoint)}
    raise QueryRefused(f"Endpoint not found: {_cut(key)}", suggest(key, names, limit=MAX_SUGGESTED))


def _names(view: ApiView, endpoint: OutlinedOperation) -> Iterable[str]:
    return filter(None, (endpoint.identity, endpoint.operation_id or view.tool_name(endpoint)))


def _find_schema(views: Sequence[ApiView], name: str) -> tuple[ApiView, SchemaEntry]:
    found = [
        (view, entry)
        for view in views
        for entry in view.schemas
        if entry.name == name.removeprefix(f"{view.api.outline.section}/")
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise QueryRefused(
            f"Several sources have a schema {_cut(name)}; give `source`", [view.source for view, _ in found]
        )
    names = {entry.name for view in views for entry in view.schemas}
    raise QueryRefused(f"Schema not found: {_cut(name)}", suggest(name, names, limit=MAX_SUGGESTED))


def _api_description(view: ApiView, room: int) -> Answer:
    """The description of a source. If it exceeds `room` bytes, its strings, servers and tags are shortened."""
    outline = view.api.outline
    about: Answer = {"source": view.source, "title": outline.title, "version": outline.version}
    texts = _message(summary=outline.summary, description=outline.description)
    counts: Answer = {"totalEndpoints": len(view.endpoints), "totalSchemas": len(view.schemas)}
    whole = about | texts | {"openapi": outline.openapi, "servers": list(outline.servers), "tags": list(outline.tags)}
    if measure(whole | counts, level=2) <= room:
        return whole | counts
    short = {name: _cut(cast("str", text)) for name, text in texts.items()}
    servers = _first(outline.servers, room // 4)
    tags = _first(outline.tags, room // 2)
    return about | short | {"openapi": outline.openapi, "servers": servers, "tags": tags} | counts


def _first(texts: Sequence[str], room: int) -> Sequence[str]:
    """As many of the first strings as fit into `room` bytes."""
    shown: list[str] = []
    for text in texts:
        room -= measure(text) + SEPARATOR_BYTES
        if room < 0:
            break
        shown.append(text)
    return shown


def _listed(view: ApiView, endpoint: OutlinedOperation, views: Sequence[ApiView]) -> Answer:
    head = {"operation": endpoint.identity, "path": endpoint.path, "method": endpoint.method}
    return head | _message(
        source=view.source if len(views) > 1 else None,
        summary=endpoint.summary,
        tags=list(endpoint.tags),
        operationId=endpoint.operation_id,
        deprecated=endpoint.deprecated,
    )


def _hit(view: ApiView, hit: Hit, views: Sequence[ApiView]) -> Answer:
    detail = _message(tool=view.tool_name(hit.endpoint), description=_cut(hit.endpoint.description))
    return _listed(view, hit.endpoint, views) | detail | {"relevance": hit.relevance, "matchedFields": list(hit.fields)}


def _entry(view: ApiView, entry: SchemaEntry, views: Sequence[ApiView]) -> Answer:
    kind = entry.kind if isinstance(entry.kind, str) else list(entry.kind)
    return {"name": entry.name} | _message(
        source=view.source if len(views) > 1 else None,
        type=kind,
        description=entry.description,
        deprecated=entry.deprecated,
    )


def _message(**members: object) -> Answer:
    """The members that are neither empty nor false."""
    return {name: value for name, value in members.items() if value}


def _page(found: Sequence[_Item], query: QueryCall, show: Callable[[_Item], Answer]) -> tuple[Sequence[Answer], Answer]:
    """As many of the requested items as fit into a page, and the members that describe the page."""
    shown: list[Answer] = []
    room = MAX_PAGE_BYTES
    for item in found[query.offset : query.offset + query.limit]:
        answer = show(item)
        room -= measure(answer, level=2)
        if room < 0 and shown:  # guard: page-bytes
            break
        shown.append(answer)
    page: Answer = {"total": len(found), "limit": query.limit, "offset": query.offset}
    if shown and query.offset + len(shown) < len(found):
        page["nextCursor"] = query.mint(query.offset + len(shown))
    return shown, page


def _open(details: Answer, resolver: Resolver) -> Answer:
    """The details, with references to parameters, body and responses resolved; references to schemas stay."""
    opened = dict(details)
    parameters = as_list(details.get("parameters"))
    if parameters is not None:
        opened["parameters"] = [resolver.open(parameter) for parameter in parameters]
    if "requestBody" in details:
        opened["requestBody"] = resolver.open(details["requestBody"])
    responses = as_object(details.get("responses"))
    if responses is not None:
        opened["responses"] = {status: resolver.open(response) for status, response in responses.items()}
    return opened


def _cut_to_size(whole: Answer, head: Answer, query: QueryCall) -> Answer:
    """The result cut to `MAX_ANSWER_BYTES` bytes, or its part at the requested pointer."""
    pointer, offset = query.text("pointer"), cast("int", query.arguments.get("offset", 0))
    if pointer is None:
        return cast("Answer", fit(whole))
    part, is_there = find_part(whole, pointer)
    if not is_there:
        raise QueryRefused(f"There is nothing at the pointer {_cut(pointer)}", [f"/{name}" for name in whole])
    answer: Answer = {**head, "pointer": pointer} | ({"offset": offset} if offset else {})
    room = MAX_ANSWER_BYTES - measure({**answer, "value": None}, level=1)
    return answer | {"value": fit(skip(part, offset), limit=room, pointer=pointer, offset=offset, level=1)}


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_LENGTH else text[: MAX_SHOWN_LENGTH - 1] + "…"
