"""Edge of the gateway: checks host, origin and header size of every HTTP request, and assigns a correlation id.

The edge is pure ASGI and the outermost layer, so its headers and counters also apply to refusals by the MCP API and the
admin API. It limits the time for a body. An exception that reaches the edge is logged and becomes a problem document
without details.
"""

import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import structlog
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.telemetry.log_context import LABELS, LogContext
from gateway.telemetry.metrics import Metrics
from gateway.web.body_timeout import BodySweep, PacedBody
from gateway.web.cors import is_preflight, preflight_headers, response_headers
from gateway.web.headers import HeaderIndex, headers_of
from gateway.web.hosts import AllowedHosts, AllowedOrigins
from gateway.web.limits import MAX_LOGGED_PATH_LENGTH
from gateway.web.problems import MEDIA_TYPE, problem_bytes, unexpected_bytes
from gateway.web.proxies import Proxies
from gateway.web.refusal_log import RefusalLog
from gateway.web.socket_refusals import refuse_handshake

log = structlog.get_logger(__name__)

PROBES = frozenset({"/healthz", "/readyz", "/metrics"})

_UNAUTHORIZED = 401
_INVALID_TOKEN = b' error="invalid_token"'
_STREAM = b"text/event-stream"
_ID_DIGITS = 24
_IDS_PER_READ = 64
_REQUEST_ID = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._-]{7,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeLimits:
    """Limits on the header size, the URL length and the body pace of a request."""

    headers: int = 64
    header_bytes: int = 16 * 1024
    """Beside the cookies."""
    cookie_bytes: int = 32 * 1024
    """Proxies for sign-on send 20 KB of cookies."""
    url_bytes: int = 4 * 1024
    body_s: float = 30.0
    body_grace_s: float = 5.0
    body_bytes_per_s: int = 1024

    @property
    def too_large(self) -> "_Refusal":
        """The refusal of a header above the limits."""
        detail = (
            f"the header is too large (limit {self.headers} fields, {self.header_bytes} bytes,"
            f" and {self.cookie_bytes} bytes of cookies); send less"
        )
        return _Refusal(431, "http.headers_too_large", detail)


def _never_draining() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeDependencies:
    """The dependencies of the edge: trusted proxies, metrics, the refusal log, and the drain state of this replica."""

    proxies: Proxies = field(default_factory=lambda: Proxies(()))
    metrics: Metrics = field(default_factory=Metrics)
    refusals: RefusalLog = field(default_factory=RefusalLog)
    is_draining: Callable[[], bool] = _never_draining

    def note(self, scope: Scope, status: int) -> None:
        """Count a response; log the refusal of a credential."""
        self.metrics.http_responses.add(str(status))
        if status == _UNAUTHORIZED:
            self.refusals.note(client_of(scope), scope["path"][:MAX_LOGGED_PATH_LENGTH])


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A refusal by the edge: HTTP status, error code and detail."""

    status: int
    code: str
    detail: str


URL_TOO_LONG = _Refusal(414, "http.url_too_long", "the URL is too long")
REPEATED_HEADER = _Refusal(400, "http.header_repeated", "a header that must be unique occurs twice")
NOT_OUR_HOST = _Refusal(
    421, "http.host_refused", "the Host header names another host; add the host to GATEWAY_ALLOWED_HOSTS"
)
FOREIGN_ORIGIN = _Refusal(
    403, "http.origin_refused", "pages of this Origin are not permitted; add the origin to GATEWAY_ALLOWED_ORIGINS"
)
BODY_TOO_SLOW = _Refusal(408, "http.body_too_slow", "the body did not arrive in time")


class Edge:
    """ASGI middleware around the whole gateway."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Iterable[str],
        origins: Iterable[str] = (),
        limits: EdgeLimits | None = None,
        around: EdgeDependencies | None = None,
        sockets: ASGIApp | None = None,
    ) -> None:
        self._app = app
        self._sockets = sockets
        self._around = around or EdgeDependencies()
        self._hosts = AllowedHosts(hosts)
        self._origins = AllowedOrigins(origins)
        self._limits = limits or EdgeLimits()
        self._bodies = BodySweep()
        self._names = _CorrelationIds()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one HTTP request or WebSocket; forward other scopes."""
        if scope["type"] != "http":
            await self._forward(scope, receive, send)
            return
        fields = headers_of(scope)
        correlation_id = scope["correlation_id"] = _client_request_id(fields) or self._names.make()
        around = self._around
        if around.proxies:
            _set_client_address(around.proxies, scope)
        page = fields.get(b"origin")
        if page is not None and not self._origins.names(page):  # guard: cors-named-origins
            page = None
        response = _ResponseSink(send, scope, around, page=page)
        refusal = self._check(scope, fields)
        if refusal is not None:
            await response.refuse(refusal)
            return
        if page is not None and is_preflight(scope):
            await response.permit()
            return
        # guard: slow-body
        if fields.get(b"content-length") is not None or fields.get(b"transfer-encoding") is not None:
            receive = PacedBody(receive, self._limits, lambda: response.refuse(BODY_TOO_SLOW), self._bodies)
        labelled = LABELS.set(LogContext(correlation_id, address=client_of(scope)))
        around.metrics.requests.now += 1
        try:
            await self._app(scope, receive, response)
        except ClientDisconnect:
            log.debug("client_disconnected")
        except Exception:
            is_answered = await response.fail()
            log.exception("request_failed")
            if not is_answered:  # guard: unforeseen-errors
                raise
        finally:
            around.metrics.requests.now -= 1
            response.close()
            LABELS.reset(labelled)

    async def _forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
        elif self._sockets is None:
            await send({"type": "websocket.close", "code": 1008})  # guard: no-websockets
        else:
            await self._open_socket(self._sockets, scope, receive, send)

    async def _open_socket(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a WebSocket handshake after the same checks as for HTTP requests."""
        fields = headers_of(scope)
        correlation_id = scope["correlation_id"] = _client_request_id(fields) or self._names.make()
        if self._around.proxies:
            _set_client_address(self._around.proxies, scope)
        if (refusal := self._check(scope, fields)) is not None:  # guard: websocket-edge
            body = problem_bytes(refusal.status, refusal.code, refusal.detail, correlation_id)
            await refuse_handshake(scope, send, Response(body, refusal.status, media_type=MEDIA_TYPE))
            return

        async def note(message: Message) -> None:
            if message["type"] == "websocket.http.response.start":
                self._around.note(scope, message["status"])
            await send(message)

        labelled = LABELS.set(LogContext(correlation_id, address=client_of(scope)))
        try:
            await app(scope, receive, note)
        except Exception:
            with suppress(OSError, RuntimeError):  # servers report a closed connection in this way
                await send({"type": "websocket.close", "code": 1011})
            log.exception("request_failed")
        finally:
            LABELS.reset(labelled)

    def _check(self, scope: Scope, fields: HeaderIndex) -> _Refusal | None:
        limits = self._limits
        if fields.count > limits.headers or not _fits(fields, limits):  # guard: headers-limit
            return limits.too_large
        # guard: url-limit
        if len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"]) > limits.url_bytes:
            return URL_TOO_LONG
        if fields.repeated and not _SINGLE.isdisjoint(fields.repeated):  # guard: repeated-headers
            return REPEATED_HEADER
        host, origin = fields.get(b"host"), fields.get(b"origin")
        is_ours = host is not None and self._hosts.allows(host)
        if not is_ours and scope["path"] not in PROBES:  # guard: host
            return NOT_OUR_HOST
        if origin is not None and not (is_ours and self._origins.allows(origin, host or b"")):  # guard: origin
            return FOREIGN_ORIGIN
        return None


class _CorrelationIds:
    """Generator of correlation ids; it reads random bytes for 64 ids with one system call."""

    def __init__(self) -> None:
        self._left = ""

    def make(self) -> str:
        """Return a new id: 12 random bytes as hexadecimal digits."""
        left = self._left or secrets.token_hex(_ID_DIGITS // 2 * _IDS_PER_READ)
        self._left = left[_ID_DIGITS:]
        return left[:_ID_DIGITS]


_SINGLE = frozenset({b"host", b"origin", b"authorization", b"content-type"})


def _client_request_id(fields: HeaderIndex) -> str | None:
    """Return the client's own request id if it is safe to log and to send back; otherwise None."""
    named = fields.get(b"x-request-id")
    return named.decode() if named is not None and _REQUEST_ID.fullmatch(named) else None


class _ResponseSink:
    """The response sink of a request: adds the edge's headers to the response, and tracks its progress."""

    __slots__ = ("_around", "_is_complete", "_is_refused", "_is_started", "_is_stream", "_page", "_scope", "_send")

    def __init__(self, send: Send, scope: Scope, around: EdgeDependencies, *, page: bytes | None) -> None:
        self._send = send
        self._scope = scope
        self._around = around
        self._page = page
        self._is_started = False
        self._is_complete = False
        self._is_refused = False
        self._is_stream = False

    async def __call__(self, message: Message) -> None:
        """Send a message of the response; drop it if the edge has refused the request."""
        if self._is_refused:  # the client has received the refusal
            return
        if message["type"] == "http.response.start":
            self._is_started = True
            self._around.note(self._scope, message["status"])
            message["headers"] = self._complete(message.get("headers", ()))
        elif not message.get("more_body", False):
            self._is_complete = True
        await self._send(message)

    async def refuse(self, refusal: _Refusal) -> None:
        """Respond and close the connection without reading the rest of the request, unless a response has started."""
        if self._is_started:
            return
        body = problem_bytes(refusal.status, refusal.code, refusal.detail, self._scope["correlation_id"])
        await self._answer(refusal.status, body)
        self._is_refused = True

    async def permit(self) -> None:
        """Respond to a CORS preflight request."""
        await self({"type": "http.response.start", "status": 204, "headers": preflight_headers(self._scope)})
        await self({"type": "http.response.body", "body": b""})

    async def fail(self) -> bool:
        """Respond with 500 if no response has started; return False if a response has started but is incomplete."""
        if not self._is_started:
            await self._answer(500, unexpected_bytes(self._scope["correlation_id"]))
        return self._is_complete

    async def _answer(self, status: int, body: bytes) -> None:
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        await self({"type": "http.response.start", "status": status, "headers": headers})
        await self({"type": "http.response.body", "body": body})

    def close(self) -> None:
        """Update the gauge of open streams at the end of a request, regardless of its outcome."""
        if self._is_stream:
            self._is_stream = False
            self._around.metrics.streams.now -= 1

    def _complete(self, headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        completed: list[tuple[bytes, bytes]] = []
        is_cached = is_closing = False
        for name, value in headers:
            if name == b"x-request-id":
                continue
            if name == b"content-type":
                self._count_stream(value)
            elif name == b"cache-control":
                is_cached = True
            elif name == b"connection":
                is_closing = True
            completed.append((name, _with_error_code(value) if self._is_failed_challenge(name) else value))
        completed.append((b"x-request-id", self._scope["correlation_id"].encode()))
        completed.append((b"x-content-type-options", b"nosniff"))
        if self._page is not None:
            completed += response_headers(self._page)
        if not is_cached:
            completed.append((b"cache-control", b"no-store"))
        if not is_closing and self._around.is_draining():
            # a proxy would otherwise reuse a connection that is about to close
            completed.append((b"connection", b"close"))
        return completed

    def _is_failed_challenge(self, name: bytes) -> bool:
        """True if this is the challenge header and the client sent an access token or key.

        Only then the challenge contains an error code (RFC 6750 §3).
        """
        if name != b"www-authenticate":
            return False
        sent = headers_of(self._scope).get(b"authorization")
        scheme, space, _ = (sent or b"").partition(b" ")
        return bool(space) and scheme.lower() in {b"bearer", b"dpop"}

    def _count_stream(self, content_type: bytes) -> None:
        if content_type.startswith(_STREAM) and not self._is_stream:
            self._is_stream = True
            self._around.metrics.streams.now += 1


def _with_error_code(asked: bytes) -> bytes:
    """Add the error code `invalid_token` to a challenge that has no error code."""
    scheme, _, parameters = asked.partition(b" ")
    if b"error=" in parameters:
        return asked
    return scheme + _INVALID_TOKEN + (b", " + parameters if parameters else b"")


def client_of(scope: Mapping[str, Any]) -> str | None:
    """Return the client address in the scope; behind a trusted proxy, `_set_client_address` has stored it."""
    client = scope.get("client")
    return None if client is None else str(client[0])


def _set_client_address(proxies: Proxies, scope: Scope) -> None:
    """Replace a trusted proxy's address in the scope with the client's own."""
    client = scope.get("client")
    if client is not None:
        found = proxies.client_of(client[0], scope["headers"])
        if found != client[0]:
            scope["client"] = (found, 0)


def _fits(fields: HeaderIndex, limits: EdgeLimits) -> bool:
    if len(fields.text) <= limits.header_bytes:
        return True
    cookies = len(fields.get(b"cookie") or b"")
    return cookies <= limits.cookie_bytes and len(fields.text) - cookies <= limits.header_bytes
