"""Handlers of imported operations: fill arguments, then credentials, into the request plan, and send the request."""

import hashlib
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from gateway.domain.http.plans import RequestPlan, SchemeKind
from gateway.domain.http.requests import Credential, NamedCredential, UpstreamRequest, UpstreamResponse
from gateway.domain.identifiers import TenantId
from gateway.domain.tools import Tool
from gateway.errors import CredentialMissing
from gateway.handlers.credentials import find_named, of_caller
from gateway.handlers.interfaces import Call, Prepared, SecretReader
from gateway.handlers.previews.requests import finish, show_request
from gateway.handlers.redaction.redaction import Redaction
from gateway.upstream.auth.credentials import apply, choose, require
from gateway.upstream.auth.delegation import Delegations
from gateway.upstream.auth.oauth_tokens import Tokens
from gateway.upstream.client import UpstreamClient
from gateway.upstream.serialize.request_builder import RequestBuilder

_UNAUTHORISED = 401
_CredentialPair = tuple[NamedCredential, NamedCredential]
"""A stored credential, and the credential of the caller that is sent instead."""
_decode_plan = msgspec.json.Decoder(RequestPlan).decode


class OperationHandler:
    """Runs one operation of one tenant."""

    def __init__(
        self,
        tenant: TenantId,
        tool: Tool,
        *,
        upstream: UpstreamClient,
        secrets: SecretReader,
        tokens: Tokens | None = None,
        delegations: Delegations | None = None,
    ) -> None:
        self._tenant = tenant
        self._source = tool.source
        self._plan = _decode_plan(tool.plan)
        self._builder = RequestBuilder(self._plan)
        self._usual_headers = _digest_form(self._builder.usual_headers)
        self._optional = frozenset(_optional_arguments(self._plan))
        self._upstream = upstream
        self._secrets = secrets
        self._delegations = delegations
        self._redaction = Redaction()
        self._tokens = (tokens or Tokens(upstream)) if _may_fetch_tokens(self._plan) else None

    def settle(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Return the arguments without optional parameters that are null, which clients send for absent values."""
        if None not in arguments.values():
            return arguments
        return {name: value for name, value in arguments.items() if value is not None or name not in self._optional}

    def prepare(self, arguments: Mapping[str, object]) -> Prepared:
        """Return the request for these arguments, without its credentials.

        Raises:
            ArgumentsInvalid: an argument is missing or cannot be written.
        """
        request = self._builder.build(arguments)
        headers = (
            self._usual_headers if request.headers is self._builder.usual_headers else _digest_form(request.headers)
        )
        seen = hashlib.blake2b(f"{request.method} {request.url}\n".encode() + headers, digest_size=32)
        if request.body is not None:
            seen.update(request.body)
        return Prepared(request=request, digest=seen.digest())

    async def require_credentials(self) -> None:
        """Check that the credentials of one security alternative are stored; see `NeedsCredentials`."""
        await self._stored_credentials()

    async def preview(self, prepared: Prepared) -> str:
        """Show the request; without a needed credential, raise CredentialMissing."""
        request = prepared.request
        if request is None:
            raise TypeError("an operation is prepared as one request")
        stored = await self._stored_credentials()
        return await finish(self._tenant, show_request(request), self._redaction, tuple(stored.values()))

    async def _stored_credentials(self) -> Mapping[str, Credential]:
        security = self._plan.security
        stored: Mapping[str, Credential] = {}
        if security:
            stored = await self._secrets.credentials(self._tenant, self._source)
        require(security, stored)
        return stored

    async def run(self, prepared: Prepared, call: Call, /) -> UpstreamResponse:
        """Send the request and return the response; an echoed credential is redacted.

        Raises:
            UpstreamError: a credential is missing, or there is no response.
        """
        request = prepared.request
        if request is None:
            raise TypeError("an operation is prepared as one request")
        if not self._plan.security:
            return await self._upstream.send_streaming(request, tenant=self._tenant, holder=call)
        stored = await self._secrets.credentials(self._tenant, self._source)
        for one in stored.values():
            if one.reference is not None:
                return await self._run_with_references(request, stored, call)
        if self._tokens is not None:
            return await self._run_with_tokens(request, stored, self._tokens, call)
        applied = apply(request, self._plan.security, stored)
        response = await self._upstream.send_streaming(applied, tenant=self._tenant, holder=call)
        return await self._redaction.apply(self._tenant, response, tuple(stored.values()))  # guard: credential-echo

    async def _run_with_references(
        self, request: UpstreamRequest, stored: Mapping[str, Credential], call: Call
    ) -> UpstreamResponse:
        """Send the request with the named credentials that its schemes refer to."""
        found: dict[str, _CredentialPair] = {}
        for scheme in choose(self._plan.security, stored) or ():
            reference = stored[scheme.name].reference
            if reference is not None:
                named = await find_named(self._secrets, self._tenant, reference, request.url)
                caller = named
                if named.delegation is not None:
                    if self._delegations is None:
                        raise CredentialMissing(
                            f"The credential {reference!r} names the caller, but this request has no caller."
                        )
                    caller = await of_caller(self._delegations, named, call)
                found[scheme.name] = named, caller
        sent, response = await self._send_as_caller(request, stored, found, call)
        secrets = tuple(sent.values())
        if response.status == _UNAUTHORISED and self._delegations is not None:
            renewed = await self._renew(found, call)
            if renewed and request.idempotent:
                sent, response = await self._send_as_caller(request, stored, {**found, **renewed}, call)
                secrets = (*secrets, *sent.values())
                if response.status == _UNAUTHORISED:
                    await self._renew(renewed, call)
        return await self._redaction.apply(self._tenant, response, secrets)  # guard: reference-echo

    async def _renew(self, found: Mapping[str, _CredentialPair], call: Call) -> dict[str, _CredentialPair]:
        """Drop the tokens that the upstream refused; return the schemes that have a new token."""
        renewed: dict[str, _CredentialPair] = {}
        for scheme, (named, caller) in found.items():
            if self._delegations is not None:
                other = await self._delegations.renew(named, call.principal, caller.credential)
                if other is not None:
                    renewed[scheme] = named, other
        return renewed

    async def _send_as_caller(
        self,
        request: UpstreamRequest,
        stored: Mapping[str, Credential],
        found: Mapping[str, _CredentialPair],
        call: Call,
    ) -> tuple[Mapping[str, Credential], UpstreamResponse]:
        """Send the request with the credentials of the caller; return the credentials and the response."""
        sent = {**stored, **{scheme: caller.credential for scheme, (_, caller) in found.items()}}
        applied = apply(request, self._plan.security, sent)
        digests = [caller.digest for _, caller in found.values() if caller.digest is not None]
        if digests and len(digests) == len(found):
            applied = replace(applied, credential=b"".join(digests))
        return sent, await self._upstream.send_streaming(applied, tenant=self._tenant, holder=call)

    async def _run_with_tokens(
        self, request: UpstreamRequest, stored: Mapping[str, Credential], tokens: Tokens, call: Call
    ) -> UpstreamResponse:
        """Send the request with a fetched token. Status 401 drops the token; an idempotent request is then retried."""
        sent, response = await self._attempt(request, stored, tokens, call)
        if response.status == _UNAUTHORISED and sent is not stored:
            await tokens.forget(self._tenant, self._source, self._plan.security, stored, refused=sent)
            if request.idempotent:
                sent, response = await self._attempt(request, stored, tokens, call)
        return await self._redaction.apply(self._tenant, response, (*stored.values(), *sent.values()))

    async def _attempt(
        self, request: UpstreamRequest, stored: Mapping[str, Credential], tokens: Tokens, call: Call
    ) -> tuple[Mapping[str, Credential], UpstreamResponse]:
        sent = await tokens.exchange(self._tenant, self._source, self._plan.security, stored)
        applied = apply(request, self._plan.security, sent)
        return sent, await self._upstream.send_streaming(applied, tenant=self._tenant, holder=call)


def _digest_form(headers: tuple[tuple[str, str], ...]) -> bytes:
    """Headers in the form that the digest of a call covers."""
    return repr(headers).encode() if headers else b""


def _optional_arguments(plan: RequestPlan) -> list[str]:
    choice = [plan.choice] if plan.bodies else []
    return [part.argument for part in plan.parameters if not part.required] + choice


def _may_fetch_tokens(plan: RequestPlan) -> bool:
    return any(scheme.kind is SchemeKind.CLIENT_CREDENTIALS for egress in plan.security for scheme in egress)
