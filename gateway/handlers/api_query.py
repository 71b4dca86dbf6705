"""Builtin query tools, which describe a tenant's APIs and call their operations; the same in every tenant."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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


@dataclass(frozen=True, slots=True)
class Queries:
    """Dependencies of the query tools of all tenants: the outlines they read, and the signer of their cursors."""

    outlines: Outlines
    cursors: CursorSigner
    schemas: InputSchemas | None = None

    def handler(self, tenant: TenantId, tool: Tool) -> "QueryHandler":
        """Return the handler of one query tool."""
        return QueryHandler(tenant, tool, self)


class QueryHandler:
    """Runs one of the query tools for one tenant. Each call supplies the sources that its principal can see."""

    def __init__(self, tenant: TenantId, tool: Tool, queries: Queries) -> None:
        self._tenant = tenant
        self._subject = HandlerSubject(name=tool.name, definition=tool.definition)
        self._outlines = queries.outlines
        self._cursors = queries.cursors
        self._schemas = queries.schemas
        self._name = tool.name
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
            if self._name == CALL:
                return await self._call(views, visible_sources, arguments, call)
            query = self._build_query(arguments, visible_sources)
            if self._name == DETAILS:
                query = replace(query, full_input=await self._full_input_schema(views, query))
            return await run_in_thread(QUERIES, self._tenant, _render, ANSWERS[self._name], views, query)
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
        cursors = _ListCursors(self._cursors, self._tenant, (self._name, arguments, visible_sources))
        offset = cursors.open(cursor) if isinstance(cursor, str) else cast("int", arguments.get("offset", 0))
        return QueryCall(arguments=arguments, offset=offset, mint=cursors.mint)

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


class _ListCursors:
    """Cursors of one list: that of a tool with its arguments, over the visible operations of each document version."""

    def __init__(
        self,
        signer: CursorSigner,
        tenant: TenantId,
        listed: tuple[str, Mapping[str, object], Sequence[Queried]],
    ) -> None:
        self._signer = signer
        self._tenant = tenant
        self._listed = listed

    def mint(self, offset: int) -> str:
        """Return the cursor of the page at an offset."""
        return self._signer.mint(self._tenant, _CURSOR_SCOPE, self._list, str(offset))

    def open(self, cursor: str) -> int:
        """Return the offset in a cursor; raises InvalidCursor."""
        return int(self._signer.open(self._tenant, _CURSOR_SCOPE, self._list, cursor))

    @cached_property
    def _list(self) -> str:
        """The digest of the list; computed once, and only for a list of several pages."""
        tool, arguments, visible_sources = self._listed
        filters = {name: value for name, value in arguments.items() if name not in _PAGING}
        source = arguments.get("source")
        matching = [one for one in visible_sources if source is None or one.source.name == source]
        versions = [(one.source.id, one.source.version, sorted(one.tools)) for one in matching]
        digest = hashlib.blake2b(_encode([tool, filters, versions]), digest_size=16)
        return f"{_CURSOR_SCOPE}:{digest.hexdigest()}"


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


_decode = msgspec.json.Decoder(_EncodedResult).decode


def _result(members: bytes) -> Result:
    """Return the result of the inner call, whose members are encoded without braces, as the result of the query."""
    read = _decode(b"{" + members + b"}")
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
