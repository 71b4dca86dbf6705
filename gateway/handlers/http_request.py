"""Declared HTTP requests: built from variables, sent only to allowed origins, their JSON responses projected.

A credential is sent only to the origins it was stored for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import anyio
import msgspec

from gateway.definitions.handlers.specs import HttpSpec
from gateway.domain.http.requests import NamedCredential, UpstreamRequest, UpstreamResponse
from gateway.domain.identifiers import TenantId
from gateway.errors import EgressDenied, TemplateFailed
from gateway.handlers.credentials import find_named, is_among, of_caller, with_credential
from gateway.handlers.interfaces import Call, SecretReader
from gateway.handlers.previews.requests import finish, show_request
from gateway.handlers.redaction.redaction import Redaction
from gateway.handlers.response_body.projection import project
from gateway.handlers.response_body.reading import JSON, TEXT
from gateway.handlers.response_body.result_processes import ResultProcesses
from gateway.upstream.auth.delegation import Delegations
from gateway.upstream.client import UpstreamClient
from gateway.upstream.http.errors import translate
from gateway.upstream.serialize.header_checks import is_argument_header, is_header_value
from gateway.upstream.serialize.path_safety import check_path_value
from gateway.upstream.serialize.percent_encoding import Unwritable

_ACCEPT = "application/json, */*;q=0.5"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "QUERY"})
_IDEMPOTENT = _SAFE | {"PUT", "DELETE"}
_DECLARABLE = frozenset({"accept", "content-type"})
UNAUTHORISED = 401


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressContext:
    """Outbound access of one tenant: the upstream client, and the tenant's credentials and origins (None: any)."""

    tenant: TenantId
    upstream: UpstreamClient
    secrets: SecretReader
    origins: frozenset[str] | None
    redaction: Redaction = field(default_factory=Redaction)
    delegations: Delegations | None = None
    processes: ResultProcesses = field(default_factory=ResultProcesses)


class HttpRequester:
    """Builds and sends one declared request."""

    def __init__(self, spec: HttpSpec, egress: EgressContext) -> None:
        self._spec = spec
        self._egress = egress

    @property
    def is_safe(self) -> bool:
        """True if the method is safe (RFC 9110), so that the request can be repeated."""
        return self._spec.method.upper() in _SAFE

    def request(self, variables: Mapping[str, object]) -> UpstreamRequest:
        """Return the request for these variables, without its credential.

        Raises:
            EgressDenied: the tenant's policy does not allow the origin.
            TemplateFailed: a template exceeded a limit, or a value or header cannot be sent.
        """
        spec = self._spec
        origins = self._egress.origins
        if origins is not None and not is_among(spec.url.origin, origins):  # guard: handler-origins
            raise EgressDenied("The tenant's policy does not allow requests to this handler's origin.")
        headers = [(name, _header(name, template.render(variables))) for name, template in spec.headers]
        body = None
        if spec.body is not None:
            body, kind = _body(spec.body.render(variables))
            if not any(name.lower() == "content-type" for name, _ in headers):
                headers.append(("Content-Type", kind))
        if not any(name.lower() == "accept" for name, _ in headers):
            headers.append(("Accept", _ACCEPT))
        method = spec.method.upper()
        return UpstreamRequest(
            method=method,
            url=spec.url.render(variables, check=_check_path),
            headers=tuple(headers),
            body=body,
            idempotent=method in _IDEMPOTENT,
            timeout_s=spec.timeout_s,
        )

    async def preview(self, request: UpstreamRequest) -> str:
        """Show the request in readable form.

        Raises:
            CredentialMissing: the credential does not exist, or is not stored for this origin.
        """
        named = await self.credential(request.url)
        return await finish(
            self._egress.tenant,
            show_request(request),
            self._egress.redaction,
            () if named is None else (named.credential,),
        )

    async def send(self, request: UpstreamRequest, call: Call, *, limit_bytes: int | None = None) -> UpstreamResponse:
        """Send the request for this call and return the projected response; an echoed credential is redacted.

        A response with status 300 or above, or without a body, is not projected.

        Raises:
            CredentialMissing: the credential does not exist, is not stored for this origin, or the caller has none.
            HandlerFailed: the response cannot be projected: it is not JSON, or has no value at the pointer.
            UpstreamError: no complete response arrived.
        """
        stored = named = await self.credential(request.url)
        if named is not None:
            if named.delegation is not None and self._egress.delegations is not None:
                named = await of_caller(self._egress.delegations, named, call)
            response = await self._send(with_credential(request, named), call, limit_bytes)
        else:
            response = await self._send(request, call, limit_bytes)
        if named is not None and stored is not None:
            sent = [named.credential]
            if response.status == UNAUTHORISED and self._egress.delegations is not None:
                renewed = await self._egress.delegations.renew(stored, call.principal, named.credential)
                if renewed is not None and request.idempotent:
                    sent.append(renewed.credential)
                    response = await self._send(with_credential(request, renewed), call, limit_bytes)
                    if response.status == UNAUTHORISED:
                        await self._egress.delegations.renew(stored, call.principal, renewed.credential)
            redaction, tenant = self._egress.redaction, self._egress.tenant
            response = await redaction.apply(tenant, response, tuple(sent))  # guard: handler-credential-echo
        return await project(self._egress.processes, self._egress.tenant, response, self._spec.result)

    async def _send(self, request: UpstreamRequest, call: Call, limit_bytes: int | None) -> UpstreamResponse:
        try:
            with anyio.fail_after(self._spec.timeout_s):
                return await self._egress.upstream.send(
                    request, tenant=self._egress.tenant, limit_bytes=limit_bytes, holder=call
                )
        except TimeoutError:
            raise translate(TimeoutError(), request.method) from None

    async def require_credential(self) -> None:
        """Check the credential of the declared origin, before a request is built.

        Raises:
            CredentialMissing: see `credential`.
        """
        await self.credential(self._spec.url.origin)

    async def credential(self, url: str) -> NamedCredential | None:
        """Return the stored credential for a request to this URL.

        Raises:
            CredentialMissing: the credential does not exist, or is not stored for this origin.
        """
        name = self._spec.credential
        if name is None:
            return None
        return await find_named(self._egress.secrets, self._egress.tenant, name, url)


def _header(name: str, value: str) -> str:
    value = value.strip()
    if not is_argument_header(name) and name.lower() not in _DECLARABLE:
        raise TemplateFailed(f"the header {name!r} is set by the gateway only")
    if not is_header_value(value):
        raise TemplateFailed(f"a value in the header {name!r} cannot be sent")
    return value


def _check_path(value: str) -> None:
    try:
        check_path_value(value)
    except Unwritable as error:
        raise TemplateFailed(f"a value does not fit the URL's path: {error}") from None


def _body(value: object) -> tuple[bytes, str]:
    if isinstance(value, str):
        try:
            return value.encode(), f"{TEXT}; charset=utf-8"
        except UnicodeEncodeError:
            raise TemplateFailed("a string in the body is not valid Unicode") from None
    try:
        return msgspec.json.encode(value), JSON
    except (TypeError, ValueError, RecursionError):
        raise TemplateFailed("the body cannot be written as JSON") from None
