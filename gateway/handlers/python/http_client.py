"""HTTP client for Python handlers: a convenience interface to the gateway's upstream client."""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import msgspec
from yarl import URL

from gateway.domain.http.requests import UpstreamRequest
from gateway.domain.identifiers import TenantId
from gateway.domain.json_text import decode_json
from gateway.domain.results import ABSENT, Absent
from gateway.errors import EgressDenied, HandlerFailed, UpstreamTimeout
from gateway.handlers.call_memo import CallMemo
from gateway.upstream.auth.credentials import digest_of_headers
from gateway.upstream.client import UpstreamClient

_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "QUERY"})
_IDEMPOTENT = _SAFE | {"PUT", "DELETE"}
_FIRST_ERROR = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """A complete response; redirects are returned, not followed."""

    status: int
    content_type: str
    content: bytes = field(repr=False)

    @property
    def is_error(self) -> bool:
        """True if the status reports a failure."""
        return self.status >= _FIRST_ERROR

    @property
    def text(self) -> str:
        """The body as UTF-8; invalid bytes are replaced."""
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """Return the body as a JSON value; integers keep every digit.

        Raises:
            HandlerFailed: the body is not JSON.
        """
        try:
            return decode_json(self.content)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise HandlerFailed("an upstream returned a response that is not JSON") from None


class HttpClient:
    """Sends requests for one call.

    When the call is restarted after a request to the client, a request with an unsafe method is not repeated. Its
    stored first response is returned instead; if that was too large to store, the request raises HandlerFailed.
    """

    def __init__(self, upstream: UpstreamClient, tenant: TenantId, memory: CallMemo) -> None:
        self._upstream = upstream
        self._tenant = tenant
        self._memory = memory
        self._sent = 0

    async def get(self, url: str, *, headers: Mapping[str, str] | None = None) -> HttpResponse:
        """Send a GET request; see `request`."""
        return await self.request("GET", url, headers=headers)

    async def post(
        self,
        url: str,
        *,
        json: object | Absent = ABSENT,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> HttpResponse:
        """Send a POST request; see `request`."""
        return await self.request("POST", url, json=json, content=content, headers=headers)

    async def request(
        self,
        method: str,
        url: str,
        *,
        json: object | Absent = ABSENT,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 30.0,
    ) -> HttpResponse:
        """Send one request and return its complete response.

        Raises:
            EgressDenied: the gateway may not connect to the URL.
            HandlerFailed: `json` is not JSON, or the response of an earlier round was too large to store.
            UpstreamError: no complete response arrived.
        """
        request = _request(method.upper(), url, json=json, content=content, headers=headers or {})
        self._sent += 1
        if request.method in _SAFE:
            return await self._send(request, timeout_s)

        async def act() -> list[Any]:
            response = await self._send(request, timeout_s)
            return [response.status, response.content_type, b64encode(response.content).decode()]

        status, kind, body = await self._memory.once(f"http/{self._sent}", act, repeatable=False)
        return HttpResponse(status=status, content_type=kind, content=b64decode(body))

    async def _send(self, request: UpstreamRequest, timeout_s: float) -> HttpResponse:
        try:
            with anyio.fail_after(timeout_s):
                response = await self._upstream.send(request, tenant=self._tenant)
        except TimeoutError:
            raise UpstreamTimeout("The upstream did not respond in time.") from None
        return HttpResponse(status=response.status, content_type=response.content_type, content=response.body)


def _request(
    method: str, url: str, *, json: object | Absent, content: bytes | None, headers: Mapping[str, str]
) -> UpstreamRequest:
    sent = tuple(headers.items())
    if json is not ABSENT:
        try:
            content = msgspec.json.encode(json)
        except (TypeError, ValueError, RecursionError):
            raise HandlerFailed("a request body cannot be written as JSON") from None
        if not any(name.lower() == "content-type" for name in headers):
            sent += (("Content-Type", "application/json"),)
    return UpstreamRequest(
        method=method,
        url=_encoded(url),
        headers=sent,
        body=content,
        idempotent=method in _IDEMPOTENT,
        credential=digest_of_headers(sent),
    )


def _encoded(text: str) -> str:
    """Return the URL in wire form: ASCII host, percent-encoded, no fragment. The egress guard checks its target."""
    try:
        url = URL(text)
        if url.user is not None or url.password is not None:
            raise EgressDenied("A URL must not contain a user name or password.")
        return str(url.with_fragment(None))
    except ValueError:
        raise EgressDenied("The gateway must not connect to the upstream's URL.") from None
