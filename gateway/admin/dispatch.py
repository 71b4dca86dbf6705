"""Dispatch of admin requests. Checks in this order: method, caller, limits, tenant, scope, body; then the handler runs.

A `GatewayError` becomes a problem document.
"""

import hashlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import anyio
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from gateway.admin.admission import AdminLimits, WorkKind
from gateway.admin.endpoint import (
    NO_TENANT,
    OPERATOR_ONLY,
    AdminDependencies,
    AdminResponse,
    Received,
    Route,
    is_upsert,
)
from gateway.admin.etags import read_creates_only, read_expected, write_tag
from gateway.admin.idempotency import read_key, respond_once, takes_key
from gateway.admin.limits import BODY_TIMEOUT_S
from gateway.admin.operator_roles import NamedOperator
from gateway.catalog.identity.operators.break_glass import note_break_glass
from gateway.catalog.tenants import find_tenant, find_trail
from gateway.catalog.transaction import Author, RequestOrigin
from gateway.domain.audit import OPERATOR_RULE, RuleKind
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import INSTALLATION, TenantId
from gateway.domain.tenancy.principals import Caller, Operator, Principal
from gateway.domain.tenancy.tenants import Tenant
from gateway.errors import DecidingRule, Forbidden, GatewayError, NotFound
from gateway.identity.authenticator import Authenticator
from gateway.identity.operators import OperatorDirectory, as_operator, is_of_installation
from gateway.identity.permissions import EVERY_KIND, limit_to_kind, require
from gateway.identity.refusal_trail import note_refusal
from gateway.openapi.query.words import is_near
from gateway.telemetry.limits import MAX_CLIENT_NAME_LENGTH
from gateway.web.authentication import address_of, authenticate
from gateway.web.bodies import declared_length, has_body, read_body
from gateway.web.models import ListQuery, NoBody, PageQuery
from gateway.web.problems import MEDIA_TYPE, correlation_id_of, problem, problem_bytes
from gateway.web.protected_resources import challenge

_BODY_METHODS = frozenset({"POST", "PUT", "PATCH"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestGate:
    """The authenticator, the limits and the rights that check a request before its body is read."""

    credentials: Authenticator
    limits: AdminLimits
    operators: OperatorDirectory


class _PathTenant(NamedTuple):
    """The tenant in a path, with its slug and its creator."""

    tenant: TenantId
    slug: str
    created_by: str | None


class _Admitted(NamedTuple):
    """The tenant of an authorised request, the principal as which its caller acts there, and the tenants it sees."""

    tenant: TenantId
    caller: Caller
    sees: Callable[[Tenant], bool] | None = None


class PathDispatcher:
    """The ASGI endpoint of one path; `fixed` contains parameters that the path spells out, such as `name` in
    `/tools/validate`.
    """

    def __init__(
        self,
        admin: AdminDependencies,
        gate: RequestGate,
        methods: Mapping[str, Route],
        fixed: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._admin = admin
        self._credentials, self._limits, self._operators = gate.credentials, gate.limits, gate.operators
        self._methods = methods
        self._fixed = fixed
        allowed = sorted({*methods, "HEAD"} if "GET" in methods else methods)
        self._allow = ", ".join(allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        request = Request(scope, receive)
        try:
            response = await self._respond(request)
        except GatewayError as error:
            note_refusal(self._credentials.refusals, scope.get("caller"), error, target=_target_of(request))
            response = problem(error, correlation_id=correlation_id_of(scope))
            if (authenticate_header := await challenge(scope, self._credentials, error)) is not None:
                response.headers["www-authenticate"] = authenticate_header.decode("latin-1")
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        route = self._methods.get("GET" if request.method == "HEAD" else request.method)
        if route is None:
            return _refuse_method(request, self._allow)
        caller = limit_to_kind(await authenticate(request.scope, self._credentials), route.applied_kind)
        await self._operators.refuse_keys(caller)
        address, declared = address_of(request.scope), declared_length(request.scope)
        admit = partial(self._limits.admit, caller, address, bytes_per_token=route.bytes_per_token)
        admit(size=declared or 0)
        with self._limits.opened(caller, address):
            path = _read_path(request, self._fixed)
            admitted = await self._authorise(caller, route, path)
            media_type = _read_media_type(request.headers.get("content-type", ""))
            is_sent = route.body is not NoBody and not (route.body.is_optional and not has_body(request.scope))
            if is_sent and media_type not in route.body.media_types:  # guard: admin-media-type
                accepted = ", ".join(route.body.media_types)
                return _refuse(request, 415, "http.unsupported_media_type", f"Content-Type must be {accepted}")
            body = await _read_body(request, route)
            # guard: admin-cost-of-chunks
            # a streamed body has no known size before its end; this check still precedes the parser
            if declared is None and body:
                admit(size=len(body))
            by = Author(
                caller=admitted.caller,
                correlation_id=correlation_id_of(request.scope),
                origin=_origin_of(request, route, address),
            )
            if await self._operators.is_break_glass(caller, address):  # guard: break-glass-noted
                await note_break_glass(self._admin.catalog, by=by)
            received = Received(
                tenant=admitted.tenant,
                by=by,
                sees=admitted.sees,
                path=path,
                query=request.query_params.multi_items(),
                body=body,
                media_type=media_type,
                expected=read_expected(request.headers.get("if-match")),
                creates_only=is_upsert(route) and read_creates_only(request.headers.get("if-none-match")),
            )
            key = read_key(request) if takes_key(route.method, route.path) else None
            async with self._limits.working(work_of(route, received.query), caller):
                if key is None:
                    return await self._run(request, route, received)
                return await respond_once(self._admin, route, received, key, handler=partial(self._run, request, route))

    async def _run(self, request: Request, route: Route, received: Received) -> Response:
        result = await route.run(self._admin, received)
        if result.lines is not None:
            return await _stream(request, result.lines, route.media_type)
        return _write(request, result)

    async def _authorise(self, caller: Caller, route: Route, path: Mapping[str, str]) -> _Admitted:
        """Return the tenant in the path, after checking that the caller may send this request for the tenant."""
        if isinstance(caller, Principal) and is_of_installation(caller):
            rights = await self._operators.rights_of(caller)
            if not any(one.is_unlimited for one in rights):
                return await self._admit_named(NamedOperator(principal=caller, rights=rights), route, path)
            caller = as_operator(caller)
        if "t" not in path:
            if isinstance(caller, Principal):  # guard: admin-operator-only
                _check_route_scope(caller, route)
                return _Admitted(NO_TENANT, caller)
            return _Admitted(INSTALLATION, caller)
        if isinstance(caller, Operator):
            return _Admitted((await self._find(route, path["t"])).tenant, caller)
        if path["t"] not in {caller.slug, caller.tenant}:  # guard: admin-tenant-of-the-path
            raise NotFound("no such tenant", rule=DecidingRule(RuleKind.TENANT))
        if route.scopes == OPERATOR_ONLY:
            raise _operator_only()  # guard: admin-operator-only-of-a-tenant
        require(caller, caller.tenant, min(route.scopes & caller.scopes or route.scopes))  # guard: admin-scope
        return _Admitted(caller.tenant, caller)

    async def _admit_named(self, named: NamedOperator, route: Route, path: Mapping[str, str]) -> _Admitted:
        """Return the tenant in the path, and the principal as which an operator with a role acts there."""
        if "t" not in path:
            return _Admitted(INSTALLATION, named.principal, named.act(route))
        found = await self._find(route, path["t"])
        return _Admitted(found.tenant, named.act_in(found.tenant, found.slug, found.created_by, route))

    async def _find(self, route: Route, name: str) -> _PathTenant:
        """Return the tenant of this slug or id; for a route that reads a trail, also a deleted one."""
        try:
            tenant = await find_tenant(self._admin.catalog, name)
        except NotFound:
            if not route.reads_trail:
                raise
            return _PathTenant(await find_trail(self._admin.catalog, name), name, None)
        return _PathTenant(tenant.id, tenant.slug, tenant.created_by)


def work_of(route: Route, query: Sequence[tuple[str, str]]) -> WorkKind:
    """Return the kind of work of the route, or a scan if a list is searched, filtered or sorted."""
    is_plain = all(name in PageQuery.model_fields for name, _ in query)
    # guard: list-search-places
    return WorkKind.SCAN if issubclass(route.query, ListQuery) and not is_plain else route.work


class DocumentRoute:
    """The OpenAPI document or its page, generated at the first request. It is public: it contains no tenant's data."""

    def __init__(
        self,
        write: Callable[[], bytes],
        limits: AdminLimits,
        *,
        media_type: str = "application/json",
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._write = write
        self._limits = limits
        self._media_type = media_type
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond with the document."""
        request = Request(scope, receive)
        try:
            self._limits.admit_anonymous(address_of(scope))
        except GatewayError as error:
            response = problem(error, correlation_id=correlation_id_of(scope))
            await response(scope, receive, send)
            return
        if request.method in {"GET", "HEAD"}:
            document = await run_in_thread(CATALOG_CHANGES, address_of(scope), self._write)
            tag = write_tag(hashlib.blake2b(document, digest_size=8).hexdigest())
            response = Response(document, headers={**self._headers, "etag": tag}, media_type=self._media_type)
        else:
            response = _refuse_method(request, "GET, HEAD")
        await response(scope, receive, send)


class NotFoundRoute:
    """The fallback route for all unknown paths below `/admin/v1`; the response names a similar path."""

    def __init__(self, templates: Sequence[str]) -> None:
        self._templates = [template.split("/") for template in templates]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond with 404."""
        near = self._find_near(scope.get("path_params", {}).get("rest", ""))
        text = f"there is no such path; did you mean {near}?" if near else "there is no such path"
        response = problem(NotFound(text), correlation_id=correlation_id_of(scope))
        await response(scope, receive, send)

    def _find_near(self, path: str) -> str:
        """Return the path that differs in one literal segment, by at most two letters; empty if there is none."""
        asked = ["", *path.strip("/").split("/")]
        for template in self._templates:
            if len(template) != len(asked):
                continue
            others = [pair for pair in zip(template, asked, strict=True) if pair[0] != pair[1] and pair[0][:1] != "{"]
            if not others or (len(others) == 1 and is_near(*others[0], 2)):
                return "/".join(template)
        return ""


def _check_route_scope(caller: Principal, route: Route) -> None:
    """Admit a tenant's key to a route without a tenant if the key has one of the route's scopes."""
    if not route.scopes & caller.scopes:
        raise _operator_only()


def _operator_only() -> Forbidden:
    return Forbidden("only the operator may do this", rule=OPERATOR_RULE)


def _origin_of(request: Request, route: Route, address: str) -> RequestOrigin:
    """The origin of a request as the audit trail names it; the name of the client is its own word."""
    named = request.headers.get("user-agent", "")[:MAX_CLIENT_NAME_LENGTH]
    way = "apply" if route.applied_kind == EVERY_KIND else "rest"
    return RequestOrigin(address=address, way=way, client=named if named.isprintable() else "")


def _target_of(request: Request) -> str:
    """The request as the audit trail names it."""
    return f"{request.method} {request.url.path}"


def _read_path(request: Request, fixed: Mapping[str, str]) -> Mapping[str, str]:
    path: Mapping[str, str] = {**fixed, **request.path_params}
    if any(not value.isprintable() for value in path.values()):
        raise NotFound("there is no such path")
    return path


async def _read_body(request: Request, route: Route) -> bytes:
    if route.method not in _BODY_METHODS:
        return b""
    declared = declared_length(request.scope)
    return await read_body(request.receive, limit=route.limit, deadline=BODY_TIMEOUT_S, declared=declared)


def _read_media_type(content_type: str) -> str:
    """Return the media type without parameters; empty if its charset is not UTF-8."""
    header = Message()
    header["content-type"] = content_type
    return header.get_content_type() if header.get_content_charset("utf-8") == "utf-8" else ""


class LineStream(StreamingResponse):
    """A line-delimited streaming response; its generator is closed when the response ends or its client disconnects."""

    def __init__(self, first: bytes, lines: AsyncGenerator[bytes], headers: Mapping[str, str], media_type: str) -> None:
        super().__init__(self._chunks(first, lines), headers=headers, media_type=media_type)
        self._lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the lines. After an error the response ends early, so the end line is missing."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            with anyio.CancelScope(shield=True):
                await self._lines.aclose()

    @staticmethod
    async def _chunks(first: bytes, lines: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        yield first
        async for chunk in lines:
            yield chunk


async def _stream(request: Request, lines: AsyncGenerator[bytes], media_type: str) -> Response:
    """Build a line-delimited streaming response; an error before the first line becomes a problem document."""
    headers = {"cache-control": "no-store"}
    if request.method == "HEAD":
        return Response(headers=headers, media_type=media_type)
    return LineStream(await anext(lines), lines, headers, media_type)


def _write(request: Request, result: AdminResponse) -> Response:
    headers = {"cache-control": "no-store"}
    if result.tag is not None:
        headers["etag"] = write_tag(result.tag)
    if result.location is not None:
        headers["location"] = request.scope.get("root_path", "") + result.location
    if result.content is None:
        return Response(status_code=result.status, headers=headers)
    body = result.content.model_dump_json().encode()
    return Response(body, result.status, headers=headers, media_type="application/json")


def _refuse_method(request: Request, allow: str) -> Response:
    response = _refuse(request, 405, "http.method_not_allowed", f"this path supports {allow}")
    response.headers["allow"] = allow
    return response


def _refuse(request: Request, status: int, code: str, detail: str) -> Response:
    body = problem_bytes(status, code, detail, correlation_id_of(request.scope))
    return Response(body, status, media_type=MEDIA_TYPE)
