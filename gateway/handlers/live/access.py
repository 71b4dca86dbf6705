"""Stored credentials of live sources: applied to requests to their origins, and redacted in the sources' messages."""

from gateway.domain.http.requests import UpstreamRequest, UpstreamResponse
from gateway.domain.identifiers import TenantId
from gateway.domain.live_sources import LiveSource
from gateway.domain.tenancy.principals import ToolCaller
from gateway.handlers.credentials import find_named, with_credential
from gateway.handlers.interfaces import SecretReader
from gateway.handlers.redaction.redaction import Credentials, Redaction
from gateway.handlers.response_body.reading import JSON
from gateway.upstream.auth.delegation import Delegations


class StoredSourceAccess:
    """Implements `gateway.upstream.live.mcp.endpoint.SourceAccess` with the tenants' stored credentials."""

    def __init__(self, secrets: SecretReader, delegations: Delegations | None = None) -> None:
        self._secrets = secrets
        self._delegations = delegations
        self._redaction = Redaction()

    async def authorize(
        self, source: LiveSource, request: UpstreamRequest, caller: ToolCaller | None
    ) -> tuple[UpstreamRequest, Credentials]:
        """Return the request with the credential that the live source's settings name.

        Raises:
            CredentialMissing: the credential does not exist, is not stored for this origin, or the caller has none.
            TokenRefused, UpstreamError: the issuer returned no token in exchange.
        """
        is_callers = caller is not None and source.caller_credential is not None  # guard: live-caller-credential
        name = source.caller_credential if is_callers else source.credential
        if name is None:
            return request, ()
        named = await find_named(self._secrets, source.tenant, name, request.url)
        if is_callers and caller is not None and self._delegations is not None:
            named = await self._delegations.resolve(named, *caller)
        return with_credential(request, named), (named.credential,)

    async def note_refusal(self, source: LiveSource, caller: ToolCaller | None, credentials: Credentials) -> None:
        """Drop a token of the caller that the source refused, so that the next request obtains a new one.

        Raises:
            AccountRequired: the caller has to connect the account again.
        """
        if caller is None or source.caller_credential is None or self._delegations is None:
            return
        named = await self._secrets.named(source.tenant, source.caller_credential)
        if named is not None:
            for refused in credentials:
                await self._delegations.renew(named, caller.principal, refused)

    async def redact(self, tenant: TenantId, raw: bytes, credentials: Credentials) -> bytes:
        """Return the JSON text without the credentials."""
        response = UpstreamResponse(status=200, content_type=JSON, body=raw)
        return (await self._redaction.apply(tenant, response, credentials)).body
