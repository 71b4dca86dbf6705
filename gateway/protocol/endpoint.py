"""What stands at a tenant's URL: who asks, for which tenant, in which era.

Nothing of the body is looked at before the credential has been; the tenant comes from the credential and the path only
has to agree. The era is chosen by the `MCP-Protocol-Version` header, as the specification has it.
"""

from typing import Any, cast

from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp_types import PARSE_ERROR, PROTOCOL_VERSION_META_KEY
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import Receive, Scope, Send

from gateway.connections.connections import DEFAULT_PROFILE, Connections
from gateway.domain.keys import Scope as KeyScope
from gateway.domain.principals import Principal
from gateway.errors import BadInput, DocumentTooLarge, Forbidden, GatewayError, NotFound, Unauthenticated
from gateway.identity.credentials import Credentials
from gateway.protocol.current import CURRENT, Exchange
from gateway.protocol.handshake import Handshake
from gateway.protocol.plain import Plain
from gateway.protocol.wire import accepts_json, answer, error_message, header, invalid_request, is_json, refusal, replay
from gateway.web.authentication import authenticate
from gateway.web.bodies import declared_length, load_json, read_body
from gateway.web.problems import status_of

MAX_BODY = 1024 * 1024
BODY_DEADLINE_S = 30.0
_MAX_USERS = 10_000


class Endpoint:
    """The ASGI application behind `/t/{tenant}/mcp` and `/t/{tenant}/{profile}/mcp`."""

    def __init__(
        self,
        credentials: Credentials,
        connections: Connections,
        modern: StreamableHTTPSessionManager,
        handshake: Handshake,
        plain: Plain,
    ) -> None:
        self._credentials = credentials
        self._connections = connections
        self._modern = modern
        self._handshake = handshake
        self._plain = plain
        self._users: dict[Principal, AuthenticatedUser] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        correlation_id: str = scope["correlation_id"]
        try:
            principal, profile = await self._admit(scope)
            async with self._connections.open(principal, profile) as registry:
                exchange = Exchange(principal, registry, correlation_id)
                CURRENT.set(exchange)
                self._identify(scope, principal)
                await self._serve(scope, receive, send, exchange)
        except GatewayError as error:
            await _refuse(send, error, correlation_id)

    async def _admit(self, scope: Scope) -> tuple[Principal, str]:
        """The principal of the request and the profile that its URL names."""
        caller = await authenticate(scope, self._credentials)
        slug, profile = _named(scope["path"])
        if not isinstance(caller, Principal) or caller.slug != slug:
            raise NotFound("not found")
        if caller.profile not in {None, profile} or profile != DEFAULT_PROFILE:
            raise NotFound("not found")
        if KeyScope.MCP not in caller.scopes:
            raise Forbidden("the key lacks the scope mcp")
        return caller, profile

    def _identify(self, scope: Scope, principal: Principal) -> None:
        """Tell the SDK who asks, so that whatever it binds to a caller is bound to tenant and subject."""
        user = self._users.get(principal)
        if user is None:
            if len(self._users) >= _MAX_USERS:
                self._users.clear()
            owner = f"{principal.tenant}/{principal.subject}"
            token = AccessToken(token="", client_id=owner, scopes=sorted(principal.scopes), subject=principal.subject)
            user = self._users[principal] = AuthenticatedUser(token)
        scope["user"] = user
        auth_context_var.set(user)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, exchange: Exchange) -> None:
        version = header(scope, b"mcp-protocol-version")
        is_modern = version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS
        method = scope["method"]
        if method == "POST":
            await self._post(scope, receive, send, exchange, is_modern=is_modern)
        elif is_modern:
            await self._modern.handle_request(scope, receive, send)
        elif method == "DELETE":
            await self._handshake.delete(scope, send, exchange)
        else:
            refused = invalid_request("this URL takes POST and DELETE", exchange.correlation_id)
            await answer(send, 405, refused, headers=((b"allow", b"POST, DELETE"),))

    async def _post(self, scope: Scope, receive: Receive, send: Send, exchange: Exchange, *, is_modern: bool) -> None:
        if not is_json(scope):
            await answer(send, 415, invalid_request("Content-Type must be application/json", exchange.correlation_id))
            return
        if not accepts_json(scope):
            await answer(send, 406, invalid_request("Accept must include application/json", exchange.correlation_id))
            return
        raw = await read_body(receive, limit=MAX_BODY, deadline=BODY_DEADLINE_S, declared=declared_length(scope))
        message = _one_object(load_json(raw))
        if message is None:
            said = "the body must be one JSON-RPC message; batches are refused"
            await answer(send, 400, invalid_request(said, exchange.correlation_id))
        elif is_modern:
            reply = await self._plain.modern(scope, message, exchange)
            if reply is not None:
                await answer(send, reply.status, reply.body)
            else:
                await self._modern.handle_request(scope, replay(raw, receive), send)
        elif (rejection := _misrouted(message, scope)) is not None:
            data = {"code": "input.invalid", "correlation_id": exchange.correlation_id}
            body = error_message(rejection.code, rejection.message, data=data, request_id=message.get("id"))
            await answer(send, 400, body)
        else:
            await self._handshake.post(scope, send, message, exchange)


def _named(path: str) -> tuple[str, str]:
    """Tenant and profile of `/t/{tenant}/mcp` or `/t/{tenant}/{profile}/mcp`."""
    match path.split("/"):
        case ["", "t", slug, "mcp"]:
            return slug, DEFAULT_PROFILE
        case ["", "t", slug, profile, "mcp"]:
            return slug, profile
        case _:
            raise NotFound("not found")


def _one_object(value: object) -> dict[str, Any] | None:
    """The value as a JSON object; None for anything else, a batch for one."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def _misrouted(message: dict[str, Any], scope: Scope) -> InboundLadderRejection | None:
    """Why a body of the modern era without the modern header cannot be served; None for all others."""
    params = _one_object(message.get("params")) or {}
    meta = _one_object(params.get("_meta")) or {}
    if PROTOCOL_VERSION_META_KEY not in meta:
        return None
    headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
    verdict = classify_inbound_request(message, headers=headers)
    return verdict if isinstance(verdict, InboundLadderRejection) else None


async def _refuse(send: Send, error: GatewayError, correlation_id: str) -> None:
    status = status_of(error)
    code = PARSE_ERROR if isinstance(error, BadInput) and not isinstance(error, DocumentTooLarge) else None
    headers: list[tuple[bytes, bytes]] = []
    if isinstance(error, Unauthenticated):
        headers.append((b"www-authenticate", b"Bearer"))
    if error.retry_after_s is not None:
        headers.append((b"retry-after", str(max(1, round(error.retry_after_s))).encode()))
    await answer(send, status, refusal(error, correlation_id, code=code), headers=tuple(headers))
