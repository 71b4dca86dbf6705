"""Handlers of one declared HTTP request. The confirmed request is sent unchanged, except for its credential."""

import hashlib
from collections.abc import Mapping
from typing import Generic, TypeVar

from gateway.domain.fairness.large_work import run_large
from gateway.domain.http.requests import UpstreamRequest
from gateway.handlers.declared_results import variables_of
from gateway.handlers.http_request import HttpRequester
from gateway.handlers.interfaces import Call, Prepared
from gateway.handlers.result_forms import ResultForm

_Result = TypeVar("_Result")


class HttpHandler(Generic[_Result]):
    """Sends one request and returns the response as a result of the primitive's family."""

    def __init__(self, requester: HttpRequester, form: ResultForm[_Result]) -> None:
        self._requester = requester
        self._form = form

    def settle(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Return the arguments unchanged; an argument that is null is not treated as absent."""
        return arguments

    def prepare(self, arguments: Mapping[str, object]) -> Prepared:
        """Return the request for these arguments, without its credential.

        Raises:
            TemplateFailed, EgressDenied: no request can be made for these arguments.
        """
        request = self._requester.request(variables_of(arguments))
        return Prepared(request=request, digest=digest_of(request))

    async def require_credentials(self) -> None:
        """Check that the credential of the request is stored for its origin; see `NeedsCredentials`."""
        await self._requester.require_credential()

    async def preview(self, prepared: Prepared) -> str:
        """Show the request; a credential that is not stored raises CredentialMissing."""
        if prepared.request is None:
            raise TypeError("an HTTP handler is prepared as one request")
        return await self._requester.preview(prepared.request)

    async def run(self, prepared: Prepared, call: Call, /) -> _Result:
        """Send the request.

        Raises:
            HandlerFailed, NotFound, UpstreamError: there is no result; see `HttpRequester.send` and `ResultForm`.
        """
        if prepared.request is None:
            raise TypeError("an HTTP handler is prepared as one request")
        response = await self._requester.send(prepared.request, call)
        return await run_large(call.principal.tenant, len(response.body), self._form.of_response, response)


def digest_of(request: UpstreamRequest) -> bytes:
    """Return the digest of the request without its credential: method, URL, headers and body."""
    seen = hashlib.blake2b(f"{request.method} {request.url}\n".encode(), digest_size=32)
    for text in (text for header in request.headers for text in header):
        raw = text.encode()
        seen.update(len(raw).to_bytes(4))
        seen.update(raw)
    seen.update(b"\n" if request.body is None else request.body)
    return seen.digest()
