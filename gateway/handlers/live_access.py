"""Stored credentials of live sources: applied to requests to their origins, and removed from what the sources send."""

from gateway.domain.http.requests import UpstreamAnswer, UpstreamRequest
from gateway.domain.live_sources import LiveSource
from gateway.handlers.credentials import find_named, with_credential
from gateway.handlers.interfaces import SecretReader
from gateway.handlers.redaction.redaction import Credentials, Redaction
from gateway.handlers.response_body.reading import JSON


class StoredSourceAccess:
    """Implements `gateway.upstream.live.mcp.endpoint.SourceAccess` with the tenants' stored credentials."""

    def __init__(self, secrets: SecretReader) -> None:
        self._secrets = secrets
        self._redaction = Redaction()

    async def authorize(self, source: LiveSource, request: UpstreamRequest) -> tuple[UpstreamRequest, Credentials]:
        """Return the request with the credential that the live source names.

        Raises:
            CredentialMissing: it is not stored, or not for this origin.
        """
        if source.credential is None:
            return request, ()
        named = await find_named(self._secrets, source.tenant, source.credential, request.url)
        return with_credential(request, named), (named.credential,)

    async def redact(self, raw: bytes, credentials: Credentials) -> bytes:
        """Return the JSON text without the credentials."""
        answer = UpstreamAnswer(status=200, content_type=JSON, body=raw)
        return (await self._redaction.apply(answer, credentials)).body
