"""The ASGI endpoint of the tenants' URLs: authenticates the caller, checks the tenant and selects the transport.

The credential is checked before the body is read. It determines the tenant, and the path must name the same tenant. At
`…/mcp`, the `MCP-Protocol-Version` header selects the protocol revision (MCP specification).
"""

import time
from collections.abc import Awaitable, Mapping
from contextlib import nullcontext
from typing import Any, Final, cast

from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp_types import CLIENT_INFO_META_KEY, INVALID_REQUEST, PARSE_ERROR, PROTOCOL_VERSION_META_KEY
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.types import Receive, Scope, Send

from gateway.domain.audit import RuleKind
from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.domain.identifiers import KeyId
from gateway.domain.json_text import load_json, refuse_many_values
from gateway.domain.tenancy.keys import Scope as KeyScope
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tenancy.profiles import DEFAULT_PROFILE
from gateway.errors import (
    BadInput,
    DecidingRule,
    DocumentTooLarge,
    Forbidden,
    GatewayError,
    InvalidBody,
    NotFound,
    Unauthenticated,
)
from gateway.identity.authenticator import Authenticator
from gateway.identity.refusal_trail import REQUEST, note_refusal
from gateway.protocol.http import sse_encoding
from gateway.protocol.http.request import McpRequest
from gateway.protocol.http.responses import id_of, invalid_request, refusal
from gateway.protocol.in_flight import InFlightLimiter
from gateway.protocol.limits import BODY_DEADLINE_S, MAX_BYTES, MAX_CONTAINERS, MAX_USERS, MAX_VALUES
from gateway.protocol.request_context import CURRENT_REQUEST, RequestContext, note_refused
from gateway.protocol.request_rate import INITIALIZE_PRICE, RequestRateLimiter
from gateway.protocol.sessions.http_sse import HttpSseTransport
from gateway.protocol.sessions.transport import SessionTransport
from gateway.protocol.stateless.envelope import envelope_error, unsupported_version_error, version_header_error
from gateway.protocol.stateless.transport import StatelessTransport
from gateway.protocol.tracing import traced
from gateway.registry.connections.connections import Connections
from gateway.telemetry.log_context import name_client
from gateway.telemetry.traces import Traces
from gateway.web.authentication import authenticate
from gateway.web.bodies import declared_length, read_body
from gateway.web.people.visitors import page_of
from gateway.web.problems import status_of
from gateway.web.protected_resources import challenge

_ALLOWED: Final[Mapping[str, tuple[str, ...]]] = {
    "mcp": ("GET", "POST", "DELETE"),
    "sse": ("GET",),
    "messages": ("POST",),
}
"""The HTTP methods that each path suffix allows."""


class McpEndpoint:
    """The ASGI application behind `/t/{tenant}/mcp`, `/t/{tenant}/{profile}/mcp`, their `…/sse` and `…/messages`."""

    def __init__(
        self,
        credentials: Authenticator,
        connections: Connections,
        modern: StatelessTransport,
        handshake: SessionTransport,
        *,
        legacy: HttpSseTransport,
        traces: Traces | None,
    ) -> None:
        self._credentials = credentials
        self._connections = connections
        self._modern = modern
        self._handshake = handshake
        self._legacy = legacy
        self.in_flight = InFlightLimiter()
        self.pacing = RequestRateLimiter()
        self._users = BoundedCache[KeyId, tuple[Principal, AuthenticatedUser]](MAX_USERS)
        self._find_user = self._users.get  # bound once, so that a lookup costs as much as a dictionary lookup
        self._traces = traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        correlation_id: str = scope["correlation_id"]
        request, context = McpRequest.read(scope, receive, send), None
        try:
            principal, profile, suffix = await self._admit(scope)
            async with self._connections.open(principal, profile) as registry:
                context = RequestContext(principal, registry, correlation_id)
                CURRENT_REQUEST.set(context)
                self._identify(scope, principal)
                limits = registry.view.snapshot.policy.limits
                self.in_flight.acquire(principal, limits)
                try:
                    # guard: pace-of-requests
                    if (delay := self.pacing.delay(principal.tenant, limits, time.monotonic())) > 0:
                        await self.pacing.sleep(delay)
                        await self._admit(scope)  # the key may have been revoked or expired during the wait
                    if (refused := version_header_error(request, context)) is not None:  # guard: mcp-one-version
                        await request.respond(400, refused)
                    elif request.method == "POST" and suffix != "sse":
                        await self._post(request, context, is_http_sse=suffix == "messages")
                    else:
                        await self._serve(request, context, suffix)
                finally:
                    self.in_flight.release(principal)
        except GatewayError as error:
            self._note(scope, error, context)
            await self._refuse(request, error, correlation_id)

    async def _admit(self, scope: Scope) -> tuple[Principal, str, str]:
        """Return the principal of the request, and the profile and the path suffix that its URL names."""
        caller = await authenticate(scope, self._credentials)
        slug, profile, suffix = _parse_path(scope["path"])
        if not isinstance(caller, Principal) or caller.slug != slug:  # guard: mcp-tenant-of-the-path
            raise NotFound("not found", rule=DecidingRule(RuleKind.TENANT))
        if caller.profile is not None and caller.profile != profile:  # guard: mcp-profile-of-the-path
            words = f"the key is bound to the profile {caller.profile}"
            raise NotFound("not found", rule=DecidingRule(RuleKind.PROFILE, caller.profile, words))
        if KeyScope.MCP not in caller.scopes:  # guard: mcp-scope
            raise Forbidden("the key lacks the scope mcp", rule=DecidingRule(RuleKind.SCOPE, KeyScope.MCP))
        return caller, profile, suffix

    def _identify(self, scope: Scope, principal: Principal) -> None:
        """Set the authenticated user that the SDK reads, named after tenant and subject."""
        known, user = self._find_user(principal.key, (None, None))
        if user is None or known is not principal:
            owner = f"{principal.tenant}/{principal.subject}"
            token = AccessToken(token="", client_id=owner, scopes=sorted(principal.scopes), subject=principal.subject)
            user = AuthenticatedUser(token)
            self._users[principal.key] = principal, user
        scope["user"] = user
        auth_context_var.set(user)

    async def _serve(self, request: McpRequest, context: RequestContext, suffix: str) -> None:
        """Serve a request without a JSON-RPC message, or with a method that the URL does not allow."""
        allowed = _ALLOWED[suffix]
        if request.method not in allowed:
            text = ", ".join(allowed)
            refused = invalid_request(f"this URL accepts {text}", context.correlation_id)
            await request.respond(405, refused, headers=((b"allow", text.encode()),))
        elif suffix != "sse" and _is_modern(request):
            await _refuse_era(request, context)
        elif request.method == "GET" and not request.accepts(sse_encoding.MEDIA_TYPE):
            text = f"Accept must include {sse_encoding.MEDIA_TYPE}"
            await request.respond(406, invalid_request(text, context.correlation_id))
        elif suffix == "sse":
            await self._legacy.get(request, context)
        elif request.method == "GET":
            await self._handshake.get(request, context)
        else:
            await self._handshake.delete(request, context)

    async def _post(self, request: McpRequest, context: RequestContext, *, is_http_sse: bool) -> None:
        if not request.is_json:  # guard: mcp-media-type
            text = "Content-Type must be application/json"
            await request.respond(415, invalid_request(text, context.correlation_id))
            return
        if request.is_encoded:  # guard: mcp-uncompressed-body
            text = "the body must not be compressed; send it without Content-Encoding"
            identity = ((b"accept-encoding", b"identity"),)  # RFC 9110 §12.5.3
            await request.respond(415, invalid_request(text, context.correlation_id), headers=identity)
            return
        if not request.accepts("application/json") and not is_http_sse:
            text = "Accept must include application/json"
            await request.respond(406, invalid_request(text, context.correlation_id))
            return
        declared = declared_length(request.scope)
        raw = await read_body(request.receive, limit=MAX_BYTES, deadline=BODY_DEADLINE_S, declared=declared)
        refuse_many_values(raw, values=MAX_VALUES, containers=MAX_CONTAINERS)  # guard: body-values
        message = _as_json_object(load_json(raw))
        if message is None:
            text = (
                "the body must be one JSON-RPC message; batches are refused: send each message as a request of its own"
            )
            await request.respond(400, invalid_request(text, context.correlation_id))
            return
        if message.get("method") == "initialize":  # guard: price-of-initialize
            limits = context.registry.view.snapshot.policy.limits
            self.pacing.charge(context.principal.tenant, limits, time.monotonic(), INITIALIZE_PRICE)
        tracing = nullcontext(request) if self._traces is None else traced(self._traces, request, message, context)
        with tracing as traced_request:
            try:
                if is_http_sse:
                    await self._legacy.post(traced_request, message, context)
                else:
                    await self._select_transport(traced_request, message, raw, context)
            except GatewayError as error:
                self._note(request.scope, error, context)
                await self._refuse(traced_request, error, context.correlation_id, request_id=id_of(message))

    def _select_transport(
        self, request: McpRequest, message: dict[str, Any], raw: bytes, context: RequestContext
    ) -> Awaitable[None]:
        """Pass the message to the transport of its protocol revision."""
        meta = _meta_of(message)
        has_envelope = PROTOCOL_VERSION_META_KEY in meta
        if _is_modern(request):
            name_client(meta.get(CLIENT_INFO_META_KEY))
            if not has_envelope and request.version not in MODERN_PROTOCOL_VERSIONS:
                return request.respond(400, unsupported_version_error(request, context, message))
            return self._modern.post(request, message, raw, context)
        if has_envelope and (refused := envelope_error(message, request, context)) is not None:
            return request.respond(400, refused)
        return self._handshake.post(request, message, context)

    def _note(self, scope: Scope, error: GatewayError, context: RequestContext | None) -> None:
        """Note an error for the audit trail if it is a refusal of a known principal."""
        trail, target = self._credentials.refusals, scope["path"]
        if context is None:
            note_refusal(trail, scope.get("caller"), error, target=target)
        else:
            note_refused(trail, context, error, action=REQUEST, target=target)

    async def _refuse(
        self, request: McpRequest, error: GatewayError, correlation_id: str, *, request_id: str | int | None = None
    ) -> None:
        if (location := _page_for(request, error)) is not None:
            headers_to_page = ((b"location", location), (b"vary", b"accept"), (b"cache-control", b"no-store"))
            await request.respond(303, headers=headers_to_page)
            return
        code = None
        if isinstance(error, InvalidBody):
            code = PARSE_ERROR
        elif isinstance(error, BadInput) and not isinstance(error, DocumentTooLarge):
            code = INVALID_REQUEST
        headers: list[tuple[bytes, bytes]] = []
        if (authenticate_header := await challenge(request.scope, self._credentials, error)) is not None:
            headers.append((b"www-authenticate", authenticate_header))
        if error.retry_after_s is not None:
            headers.append((b"retry-after", str(max(1, round(error.retry_after_s))).encode()))
        body = refusal(error, correlation_id, code=code, request_id=request_id)
        await request.respond(status_of(error), body, headers=tuple(headers))


def _page_for(request: McpRequest, error: GatewayError) -> bytes | None:
    """Return the path of the tenant's page for a browser without a credential; None for every MCP client."""
    is_plain_get = request.method == "GET" and request.headers.get(b"authorization") is None
    if not is_plain_get or not isinstance(error, Unauthenticated):
        return None
    if not request.prefers("text/html", to=sse_encoding.MEDIA_TYPE):  # no MCP client does
        return None
    location = page_of(request.path)
    return None if location is None else location.encode()


def _is_modern(request: McpRequest) -> bool:
    """True if the `MCP-Protocol-Version` header names a revision without a handshake, or an unknown one."""
    return request.version is not None and request.version not in HANDSHAKE_PROTOCOL_VERSIONS


def _parse_path(path: str) -> tuple[str, str, str]:
    """Tenant, profile and suffix of `/t/{tenant}/mcp`, `/t/{tenant}/{profile}/mcp`, and of `…/sse` and `…/messages`."""
    match path.split("/"):
        case ["", "t", slug, suffix] if suffix in _ALLOWED:
            return slug, DEFAULT_PROFILE, suffix
        case ["", "t", slug, profile, suffix] if suffix in _ALLOWED:
            return slug, profile, suffix
        case _:
            raise NotFound("not found")


def _as_json_object(value: object) -> dict[str, Any] | None:
    """Return the value if it is a JSON object; None for anything else, such as a batch."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else None  # guard: no-batches


async def _refuse_era(request: McpRequest, context: RequestContext) -> None:
    """Reject GET and DELETE, because 2026-07-28 has no sessions; an unknown revision gets the version error."""
    if request.version in MODERN_PROTOCOL_VERSIONS:
        refused = invalid_request(f"{request.version} has no sessions; use POST", context.correlation_id)
        await request.respond(405, refused, headers=((b"allow", b"POST"),))
    else:
        await request.respond(400, unsupported_version_error(request, context))


def _meta_of(message: dict[str, Any]) -> dict[str, Any]:
    """The `_meta` of a message, which names its revision in 2026-07-28."""
    params = message.get("params")
    meta: object = cast("dict[str, Any]", params).get("_meta") if isinstance(params, dict) else None
    return cast("dict[str, Any]", meta) if isinstance(meta, dict) else {}
