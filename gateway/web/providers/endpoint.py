"""WebSocket endpoint of providers, `/t/{tenant}/provide`: authentication, hello, resumption and takeover.

A connection is authenticated like an MCP request. Its attachment outlives the connection by a few seconds, so a task of
the endpoint owns the attachment. `docs/providers.md` describes the protocol.
"""

import asyncio
import re
from functools import partial
from typing import Final
from weakref import WeakValueDictionary

import anyio
import structlog
from starlette.types import Receive, Scope, Send

from gateway.domain.audit import RuleKind
from gateway.domain.identifiers import TenantId
from gateway.domain.live_sources import LiveSource
from gateway.domain.refusals import LiveSourceFailed
from gateway.domain.tenancy.keys import Scope as KeyScope
from gateway.domain.tenancy.principals import Principal
from gateway.errors import (
    BadInput,
    Conflict,
    DecidingRule,
    Forbidden,
    GatewayError,
    LimitExceeded,
    NotFound,
    Unavailable,
)
from gateway.identity.local_token_buckets import TokenBuckets
from gateway.identity.refusal_trail import note_refusal
from gateway.upstream.live.agent import jsonrpc
from gateway.upstream.live.agent.attachment import AgentAttachment
from gateway.upstream.live.agent.hello import VERSION, AgentHello, parse_hello
from gateway.upstream.live.agent.jsonrpc import AgentRequest
from gateway.upstream.live.agent.limits import CALL_S, MAX_PRIMITIVES
from gateway.web.authentication import authenticate
from gateway.web.problems import correlation_id_of, problem
from gateway.web.providers.attachments import OpenAttachment, ProvidedAttachments
from gateway.web.providers.connection import CloseCode, ConnectionEnded, ProviderConnection
from gateway.web.providers.limits import (
    HANDSHAKES_PER_S,
    HEARTBEAT_S,
    HELLO_S,
    MAX_CONNECTIONS,
    MAX_MESSAGE_BYTES,
    MESSAGES_PER_S,
    PROVIDER_RETRY_S,
)
from gateway.web.providers.open_providers import STOPPING, OpenProviders
from gateway.web.socket_refusals import refuse_handshake

log = structlog.get_logger(__name__)

_HANDSHAKES_BURST: Final = 60.0
_LIMITS: Final = {
    "message_bytes": MAX_MESSAGE_BYTES,
    "messages_per_second": MESSAGES_PER_S,
    "primitives": MAX_PRIMITIVES,
    "call_s": CALL_S,
}
_NOT_SERVED: Final = "the attachment ended before it was served; connect again"
_PATH: Final = re.compile(r"/t/(?P<slug>[^/]+)/provide")
_FINAL: Final = frozenset({1000, 1001, 1002, 1003, 1007, 1008, 1009, CloseCode.BAD_MESSAGE, CloseCode.RESTART})
"""Close codes after which the attachment ends without waiting for a resumption."""


class ProvideEndpoint:
    """The ASGI application of provider connections."""

    def __init__(
        self, providers: OpenProviders, sources: ProvidedAttachments, *, heartbeat_s: float = HEARTBEAT_S
    ) -> None:
        self._providers = providers
        self._sources = sources
        self._heartbeat_s = heartbeat_s
        self._handshakes = TokenBuckets(rate=HANDSHAKES_PER_S, burst=_HANDSHAKES_BURST)
        self._turns = WeakValueDictionary[tuple[TenantId, str], asyncio.Lock]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one WebSocket."""
        connections = self._providers.connections
        try:
            await receive()  # websocket.connect
            principal = await self._admit(scope)
        except GatewayError as error:
            note_refusal(self._providers.credentials.refusals, scope.get("caller"), error, target=scope["path"])
            await refuse_handshake(scope, send, problem(error, correlation_id=correlation_id_of(scope)))
            return
        connection = ProviderConnection(receive, send, heartbeat_s=self._heartbeat_s)
        connections[connection] = principal
        try:
            await send({"type": "websocket.accept"})
            async with anyio.create_task_group() as group:
                group.start_soon(self._read, connection, principal, group.cancel_scope)
                await connection.write_all()
                group.cancel_scope.cancel()
        finally:
            del connections[connection]

    async def _admit(self, scope: Scope) -> Principal:
        """Authenticate the handshake by the rules of MCP URLs, and return its principal."""
        caller = await authenticate(scope, self._providers.credentials)
        path = _PATH.fullmatch(scope["path"])
        # guard: provide-tenant-of-the-path
        if path is None or not isinstance(caller, Principal) or caller.slug != path["slug"]:
            raise NotFound("not found", rule=DecidingRule(RuleKind.TENANT))
        if KeyScope.PROVIDE not in caller.scopes:  # guard: provide-scope
            raise Forbidden("the key lacks the scope provide", rule=DecidingRule(RuleKind.SCOPE, KeyScope.PROVIDE))
        if self._providers.is_draining:
            raise Unavailable(STOPPING, retry_after_s=1)
        # Rates after the credential: a stranger must not use up the handshakes of a tenant.
        if (wait_s := self._handshakes.take(caller.tenant)) > 0:  # guard: provide-handshakes
            message = "too many provider connections were opened in a short time"
            raise LimitExceeded(message, limit="provider_handshakes", retry_after_s=wait_s)
        if self._providers.count(caller.tenant) >= MAX_CONNECTIONS:  # guard: provide-connections
            message = f"too many open provider connections (limit {MAX_CONNECTIONS} per tenant and replica); close some"
            raise LimitExceeded(message, limit="provider_connections", retry_after_s=PROVIDER_RETRY_S)
        return caller

    async def _read(self, connection: ProviderConnection, principal: Principal, scope: anyio.CancelScope) -> None:
        """Handle the messages of a connection until it ends."""
        attached: OpenAttachment | None = None
        try:
            attached = await self._begin(connection, principal)
            while True:
                await attached.attachment.receive(await connection.read(), connection)
        except ConnectionEnded as ended:
            if attached is not None and ended.code in _FINAL:
                attached.attachment.end("the program closed the connection")
        finally:
            if attached is not None:
                attached.attachment.disconnect(connection)
            if not connection.is_closing:
                scope.cancel()

    async def _begin(self, connection: ProviderConnection, principal: Principal) -> OpenAttachment:
        """Read the provider's hello; return the attachment that it opens or resumes."""
        message = await connection.read(within_s=HELLO_S)
        if not isinstance(message, AgentRequest) or message.method != "provider/hello" or message.id is None:
            connection.refuse(CloseCode.BAD_MESSAGE, "the first message must be the request provider/hello")
        try:
            hello = parse_hello(message)
            key = principal.tenant, hello.source
            # One hello of a source at a time: two that find no attachment would both open one.
            async with self._turns.setdefault(key, asyncio.Lock()):
                return await self._attach(connection, principal, hello)
        except GatewayError as error:
            connection.send(jsonrpc.error_response(message.id, error))
            connection.refuse(_code_of(error), error.message)

    async def _attach(self, connection: ProviderConnection, principal: Principal, hello: AgentHello) -> OpenAttachment:
        attached = self._providers.attached.get((principal.tenant, hello.source))
        is_owner = attached is not None and attached.principal.subject == principal.subject  # guard: provide-owner
        is_resumed = attached is not None and is_owner and attached.attachment.accepts(hello.resume)
        if attached is None or not is_resumed:
            # Claimed before the former attachment ends: a refused newcomer must not disconnect the present program.
            source = await self._sources.claim(principal, hello.source)
            if attached is not None:
                attached.end(CloseCode.REPLACED, "a newer connection of the same subject has taken over the source")
                await attached.is_over.wait()
            attached = await self._open_attachment(principal, source, hello)
        elif attached.connection is not None:
            attached.connection.close(CloseCode.REPLACED, "resumed by a newer connection")
        attached.principal, attached.connection = principal, connection
        token, calls = attached.attachment.connect(connection, hello.calls)
        connection.send(
            jsonrpc.result(
                hello.message_id,
                {
                    "version": VERSION,
                    "attachment": attached.attachment.id,
                    "resume": token,
                    "resumed": is_resumed,
                    "calls": calls,
                    "heartbeat_s": self._heartbeat_s,
                    "limits": _LIMITS,
                },
            )
        )
        return attached

    async def _open_attachment(self, principal: Principal, source: LiveSource, hello: AgentHello) -> OpenAttachment:
        """Return a new attachment once the attachment loop serves it."""
        attached = OpenAttachment(principal=principal, source=source)
        attached.attachment = AgentAttachment(
            title=hello.title,
            check=partial(self._sources.check, principal.tenant),
            completes=hello.completes,
            reports_updates=hello.reports_updates,
            listener=attached,
        )
        # Registered before it is served: a hello that arrives meanwhile must find it.
        self._providers.attached[principal.tenant, hello.source] = attached
        self._providers.tasks.spawn(self._keep, attached)
        try:
            await attached.is_served.wait()
        except BaseException:
            attached.attachment.end("the connection was lost")
            raise
        if attached.failure is not None:
            raise attached.failure
        if attached.attachment.has_ended:  # guard: provide-ended
            raise LiveSourceFailed(_NOT_SERVED)
        return attached

    async def _keep(self, attached: OpenAttachment) -> None:
        """Serve the attachment until it ends; offer it again after each change of its source."""
        key = attached.principal.tenant, attached.source.name
        code, reason = CloseCode.SOURCE_GONE, "the gateway ended the attachment"
        try:
            while not attached.attachment.has_ended:
                async with self._sources.offer(attached.source, attached.attachment) as attached.listener:
                    attached.is_served.set()
                    reason = await attached.attachment.wait_closed()
                if not attached.attachment.has_ended:
                    attached.source = await self._sources.renew(attached.source)
        except GatewayError as error:
            attached.failure, reason = error, error.message
            code = CloseCode.REPLACED if isinstance(error, Conflict) else _code_of(error)
        except Exception:
            attached.failure, code = LiveSourceFailed(_NOT_SERVED), CloseCode.FAILED
            raise
        finally:
            attached.end(code, reason)
            if self._providers.attached.get(key) is attached:
                del self._providers.attached[key]
            # Also after a failure: the hello waits for it, and reads the failure then.
            attached.is_served.set()
            attached.is_over.set()


def _code_of(error: GatewayError) -> CloseCode:
    """Return the close code for the error of a refused hello."""
    if isinstance(error, BadInput):
        return CloseCode.BAD_MESSAGE
    if isinstance(error, Conflict | LimitExceeded):
        return CloseCode.NAME_TAKEN
    return CloseCode.SOURCE_GONE if isinstance(error, NotFound) else CloseCode.FAILED
