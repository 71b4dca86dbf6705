"""Builtin query tools, which describe a tenant's APIs and call their operations; the same in every tenant."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, cast

import msgspec
import structlog
from msgspec.structs import replace

from gateway.catalog.overrides.overlay import without_pinned
from gateway.domain.fairness.thread_kinds import QUERIES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import TenantId
from gateway.domain.queries import Queried, QueriedKind
from gateway.domain.results import ABSENT, Result
from gateway.domain.tools import Tool
from gateway.errors import NotFound
from gateway.handlers.interfaces import Call, InputSchemas, Prepared
from gateway.handlers.local_handler import HandlerSubject, build_prepared_call
from gateway.handlers.previews.requests import escape
from gateway.openapi.query.answers import (
    ANSWERS,
    Answering,
    QueryCall,
    QueryRefused,
    choose_views,
    find_named,
    get_endpoint_details,
)
from gateway.openapi.query.api import ApiView, DocumentIndex
from gateway.openapi.query.tools import CALL, DETAILS, SEARCH
from gateway.openapi.query.truncation import render

log = structlog.get_logger(__name__)

_CURSOR_SCOPE = "query"
_SHOWN: Mapping[str, frozenset[QueriedKind]] = {
    SEARCH: frozenset({QueriedKind.DOCUMENT, QueriedKind.LIVE, QueriedKind.FOUND}),
    DETAILS: frozenset(QueriedKind),
    CALL: frozenset({QueriedKind.DOCUMENT, QueriedKind.LIVE, QueriedKind.FOUND}),
}
_EXPOSED = frozenset({QueriedKind.DOCUMENT, QueriedKind.LIVE})
"""The kinds of sources that each query tool returns; the other tools return exposed sources only."""
_PAGING = frozenset({"cursor", "offset", "limit"})
_encode = msgspec.json.Encoder(order="sorted").encode


class CursorSigner(Protocol):
    """Signs list positions as cursors, and verifies them."""

    def mint(self, tenant: TenantId, profile: str, listing: str, last: str) -> str:
        """Return the cursor of the next page."""
        ...

    def open(self, tenant: TenantId, profile: str, listing: str, cursor: str) -> str:
        """Return the position in a cursor; raises InvalidCursor."""
        ...


class Outlines(Protocol):
    """The outlines of documents and live sources."""

    async def of(self, tenant: TenantId, queried: Queried) -> DocumentIndex:
        """Return the outline of one version of a source, or of the visible tools of a live source; raises NotFound."""
        ...


class Queries:
    """Shared dependencies of the query tools of all tenants."""

    def __init__(self, outlines: Outlines, cursors: CursorSigner, schemas: InputSchemas | None = None) -> None:
        self._outlines = outlines
        self._cursors = cursors
        self.schemas = schemas

    def handler(self, tenant: TenantId, tool: Tool) -> "QueryHandler":
        """Return the handler of one query tool."""
        sources = QuerySources(outlines=self._outlines, cursors=self._cursors, schemas=self.schemas)
        return QueryHandler(tenant, tool, sources=sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySources:
    """The sources that the query tools read, and the signer of their cursors."""

    outlines: Outlines
    cursors: CursorSigner
    schemas: InputSchemas | None = None


class QueryHandler:
    """Runs one of the query tools for one tenant. Each call supplies the sources that its principal can see."""

    def __init__(self, tenant: TenantId, tool: Tool, *, sources: QuerySources) -> None:
        self._tenant = tenant
        self._subject = HandlerSubject(name=tool.name, definition=tool.definition)
        self._outlines = sources.outlines
        self._cursors = sources.cursors
        self._schemas = sources.schemas
        self._answer = ANSWERS.get(tool.name)
        self._kinds = _SHOWN.get(tool.name, _EXPOSED)

    def settle(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Return the arguments without nulls, which clients send for absent values; whole floats become integers."""
        return {name: _normalized(value) for name, value in arguments.items() if value is not None}

    def prepare(self, arguments: Mapping[str, object]) -> Prepared:
        """Return the call for these arguments."""
        return build_prepared_call(self._subject, arguments)

    async def preview(self, prepared: Prepared) -> str:
        """Show the name and the arguments; an operation that `call_endpoint` calls has its own preview."""
        return escape(prepared.summary)

    async def run(self, prepared: Prepared, call: Call, /) -> Result:
        """Return the result of the query, or call the named operation.

        Raises:
            InvalidCursor: the cursor does not belong to the current list.
            GatewayError: the operation was refused, no query thread is free, or the database is unavailable.
            InputRequired: the called operation needs a response from the client first.
        """
        arguments = prepared.arguments
        visible_sources = call.queried()
        views = await self._views(visible_sources)
        try:
            if self._answer is None:
                return await self._call(views, visible_sources, arguments, call)
            query = self._build_query(arguments, visible_sources)
            if self._answer is get_endpoint_details:
                query = replace(query, full_input=await self._full_input_schema(views, query))
            return await run_in_thread(QUERIES, self._tenant, _render, self._answer, views, query)
        except QueryRefused as refused:
            return _refusal_result(refused)

    async def _views(self, visible_sources: Sequence[Queried]) -> Sequence[ApiView]:
        found: list[ApiView] = []
        for one in visible_sources:
            if one.source.kind not in self._kinds:  # guard: listed-source-queried
                continue
            try:
                api = await self._outlines.of(self._tenant, one)
            except NotFound:  # replaced since the snapshot was loaded; the other sources remain
                log.info("outline_gone", tenant_id=self._tenant, source=one.source.name, version=one.source.version)
                continue
            found.append(api.view(one))
        return found

    async def _full_input_schema(self, views: Sequence[ApiView], query: QueryCall) -> bytes | None:
        """Return the full input schema of the named operation, if its tool lists a shortened one."""
        candidate_views = choose_views(views, query.text("source"))
        view, endpoint = await run_in_thread(QUERIES, self._tenant, find_named, candidate_views, query.arguments)
        tool = view.tools.get(endpoint.identity)
        if tool is None or self._schemas is None or not tool.is_shortened:
            return None
        full = await self._schemas.of(self._tenant, tool)
        return None if full is None else without_pinned(full, tool.pinned)

    def _build_query(self, arguments: Mapping[str, object], visible_sources: Sequence[Queried]) -> QueryCall:
        cursor = arguments.get("cursor")
        listing = cache(lambda: self._listing(arguments, visible_sources))

        def mint(offset: int) -> str:
            return self._cursors.mint(self._tenant, _CURSOR_SCOPE, listing(), str(offset))

        if isinstance(cursor, str):
            offset = int(self._cursors.open(self._tenant, _CURSOR_SCOPE, listing(), cursor))
        else:
            offset = cast("int", arguments.get("offset", 0))
        return QueryCall(arguments=arguments, offset=offset, mint=mint)

    def _listing(self, arguments: Mapping[str, object], visible_sources: Sequence[Queried]) -> str:
        """Return the scope of a cursor: tool, arguments, and the visible operations of each document version."""
        filters = {name: value for name, value in arguments.items() if name not in _PAGING}
        source = arguments.get("source")
        matching = [one for one in visible_sources if source is None or one.source.name == source]
        versions = [(one.source.id, one.source.version, sorted(one.tools)) for one in matching]
        digest = hashlib.blake2b(_encode([self._subject.name, filters, versions]), digest_size=16)
        return f"{_CURSOR_SCOPE}:{digest.hexdigest()}"

    async def _call(
        self, views: Sequence[ApiView], visible_sources: Sequence[Queried], arguments: Mapping[str, object], call: Call
    ) -> Result:
        candidate_views = choose_views(views, _text(arguments, "source"))
        view, endpoint = await run_in_thread(QUERIES, self._tenant, find_named, candidate_views, arguments)
        tools = next(one.tools for one in visible_sources if one.source.name == view.source)
        tool = tools.get(endpoint.identity)
        if tool is None:
            raise QueryRefused(f"{endpoint.identity} cannot be called; see the report of its import")
        operation_arguments = cast("Mapping[str, object]", arguments.get("arguments", {}))
        return _result(await call.call_operation(tool, operation_arguments))


def _render(response: Answering, views: Sequence[ApiView], query: QueryCall) -> Result:
    content = response(choose_views(views, query.text("source")), query)
    return Result(content=[{"type": "text", "text": render(content)}], structured=content)


def _refusal_result(refused: QueryRefused) -> Result:
    structured: dict[str, object] = {"error": refused.message}
    if refused.suggestions:
        structured["suggestions"] = list(refused.suggestions)
    return Result(content=[{"type": "text", "text": render(structured)}], is_error=True)


class _EncodedResult(msgspec.Struct):
    """A result whose structured content stays encoded, so that numbers keep all digits."""

    content: list[dict[str, Any]]
    structured: msgspec.Raw = msgspec.field(name="structuredContent", default=msgspec.Raw())
    is_error: bool = msgspec.field(name="isError", default=False)
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


_read = msgspec.json.Decoder(_EncodedResult).decode


def _result(members: bytes) -> Result:
    """Return the result of the inner call as the result of the query."""
    read = _read(b"{" + members + b"}")
    structured = read.structured if bytes(read.structured) else ABSENT
    return Result(content=read.content, structured=structured, is_error=read.is_error, meta=read.meta)


def _normalized(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(arguments: Mapping[str, object], name: str) -> str | None:
    value = arguments.get(name)
    return value if isinstance(value, str) else None


def is_interactive(tool: Tool) -> bool:
    """True if a call may send a request to the client, because the called operation may need a confirmation."""
    return tool.name == CALL
