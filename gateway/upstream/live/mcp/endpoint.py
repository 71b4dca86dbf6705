"""HTTP endpoint of one live source: sends requests with the declared headers and the stored credential.

Every response is redacted before it is parsed. The caller's own token and headers are never forwarded.
"""

from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urljoin

from msgspec.structs import replace

from gateway.domain.http.requests import Credential, UpstreamRequest
from gateway.domain.identifiers import TenantId
from gateway.domain.live_sources import LiveSource
from gateway.domain.refusals import LiveSourceFailed
from gateway.domain.tenancy.principals import ToolCaller
from gateway.errors import UpstreamAnswerTooLarge
from gateway.upstream.auth.credentials import digest_of_headers
from gateway.upstream.body_room import RoomForBody
from gateway.upstream.client import UpstreamClient
from gateway.upstream.egress.origins import read_url
from gateway.upstream.live.interfaces import LiveClient
from gateway.upstream.live.mcp.limits import MAX_ERROR_BODY_BYTES, MAX_RESPONSE_BYTES
from gateway.upstream.live.mcp.messages import RemoteRefusal, is_object, read_message
from gateway.upstream.response_stream import ResponseStream
from gateway.upstream.serialize.header_checks import is_argument_header, is_header_value

Credentials = tuple[Credential, ...]

_ACCEPT = "application/json, text/event-stream"
_RESERVED = ("mcp-", "last-event-id")
_REDIRECTS, _ERRORS = 300, 400
_UNAUTHENTICATED, _FORBIDDEN = 401, 403


class SourceAccess(Protocol):
    """Applies the stored credential of a live source, and redacts it in the source's messages."""

    async def authorize(
        self, source: LiveSource, request: UpstreamRequest, caller: ToolCaller | None
    ) -> tuple[UpstreamRequest, Credentials]:
        """Return the request with the source's credential (per-caller if configured), and the secrets that it contains.

        Raises:
            CredentialMissing: the credential is not stored, is for another origin, or the caller has none.
        """
        ...

    async def note_refusal(self, source: LiveSource, caller: ToolCaller | None, credentials: Credentials) -> None:
        """Record that the source responded with status 401 to a request with these secrets."""
        ...

    async def redact(self, tenant: TenantId, raw: bytes, credentials: Credentials) -> bytes:
        """Return the JSON text without the secrets."""
        ...


class HttpRefusal(LiveSourceFailed):
    """The server responded with an error status and without a JSON-RPC error."""

    def __init__(self, status: int) -> None:
        self.status = status
        hint = ""
        if _REDIRECTS <= status < _ERRORS:
            hint = "; redirects are not followed"
        elif status in {_UNAUTHENTICATED, _FORBIDDEN}:
            hint = "; check the credential of the live source"
        super().__init__(f"the server responded with HTTP status {status}{hint}")


class AuthorizedEndpoint:
    """The endpoint with the credential of one request."""

    def __init__(
        self,
        endpoint: "SourceEndpoint",
        caller: ToolCaller | None,
        request: UpstreamRequest,
        credentials: Credentials,
    ) -> None:
        self._endpoint = endpoint
        self._caller = caller
        self._request = request
        self._credentials = credentials

    @property
    def identity(self) -> bytes:
        """The digest of the credential, for comparisons in this process."""
        return self._request.credential

    @property
    def tenant(self) -> TenantId:
        """The tenant of the live source."""
        return self._endpoint.source.tenant

    def open_room(self) -> RoomForBody:
        """Return the room of one large message, which its reader has to release."""
        return self._endpoint.upstream.room.open(self.tenant)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets of the credential."""
        return tuple(f"{one.username or ''}:{one.value}" for one in self._credentials)

    async def open(
        self,
        method: str,
        headers: tuple[tuple[str, str], ...],
        body: bytes | None = None,
        *,
        url: str | None = None,
        limit_bytes: int = MAX_RESPONSE_BYTES,
    ) -> ResponseStream:
        """Send one request and return its response when the head has arrived.

        Raises:
            UpstreamError: the server sent no response.
            HttpRefusal, RemoteRefusal: the server responded with an error status.
        """
        request = self._request
        stream = await self._endpoint.upstream.open_response(
            replace(
                request,
                method=method,
                url=request.url if url is None else url,
                headers=(*request.headers, ("Accept", _ACCEPT), *_content_type_headers(body), *headers),
                body=body,
                idempotent=method == "GET",
            ),
            tenant=self._endpoint.source.tenant,
            limit_bytes=limit_bytes,
        )
        if stream.status >= _REDIRECTS:
            with stream:
                raise await self._refusal(stream)
        return stream

    async def redact(self, raw: bytes) -> bytes:
        """Return the JSON text without the credential."""
        if not self._credentials:
            return raw
        access = self._endpoint.access
        return await access.redact(self.tenant, raw, self._credentials)  # guard: live-credential-echo

    def join(self, reference: str) -> str:
        """Resolve a URL reference of the server.

        Raises:
            LiveSourceFailed: the URL has another origin, which must not receive credentials or messages.
        """
        own = self._request.url
        try:
            joined = urljoin(own, reference)
        except ValueError:
            joined = ""
        here, there = read_url(own), read_url(joined)
        if here is None or there is None or here[0].key != there[0].key:  # guard: live-endpoint-origin
            raise LiveSourceFailed("the server named an endpoint of another origin")
        return joined

    async def _refusal(self, stream: ResponseStream) -> LiveSourceFailed:
        """Return the JSON-RPC error in the body, or an error with the HTTP status."""
        if stream.status == _UNAUTHENTICATED:
            await self._endpoint.access.note_refusal(self._endpoint.source, self._caller, self._credentials)
        try:
            raw = b""
            while len(raw) < MAX_ERROR_BODY_BYTES and (piece := await stream.read()):
                raw += piece
            error = read_message(await self.redact(raw)).get("error") if len(raw) < MAX_ERROR_BODY_BYTES else None
        except (LiveSourceFailed, UpstreamAnswerTooLarge):
            error = None
        return RemoteRefusal(error, status=stream.status) if is_object(error) else HttpRefusal(stream.status)


class SourceEndpoint:
    """The URL, headers and credential name of a live source."""

    def __init__(self, source: LiveSource, upstream: UpstreamClient, access: SourceAccess) -> None:
        self.source = source
        self.upstream = upstream
        self.access = access

    @property
    def names_callers(self) -> bool:
        """True if the source has a per-caller credential."""
        return self.source.caller_credential is not None

    async def authorize(self, client: LiveClient | None = None) -> AuthorizedEndpoint:
        """Load the stored credential; with a client, a per-caller credential is of its caller.

        Raises:
            LiveSourceFailed: the settings of the source are invalid.
            CredentialMissing: the credential is not stored, is for another origin, or the caller has none.
        """
        url, declared = self.source.settings.get("url"), self.source.settings.get("headers")
        if not isinstance(url, str):
            raise LiveSourceFailed("the live source has no URL")
        headers = _declared_headers(declared) if is_object(declared) else ()
        request = UpstreamRequest(method="POST", url=url, headers=headers, credential=digest_of_headers(headers))
        caller = None if client is None else client.caller
        return AuthorizedEndpoint(self, caller, *await self.access.authorize(self.source, request, caller))


def _declared_headers(headers: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    for name, value in headers.items():
        # guard: live-declared-headers
        if not is_argument_header(name) or name.lower().startswith(_RESERVED) or not isinstance(value, str):
            raise LiveSourceFailed(f"the header {name!a} is set by the gateway only")
        if not is_header_value(value):
            raise LiveSourceFailed(f"the value of the header {name!a} cannot be sent")
    return tuple((name, str(value)) for name, value in headers.items())


def _content_type_headers(body: bytes | None) -> tuple[tuple[str, str], ...]:
    return () if body is None else (("Content-Type", "application/json"),)
