"""How an imported operation runs: its plan filled with arguments, its credentials added last, sent through the door."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from urllib.parse import quote

import msgspec

from gateway.domain.identifiers import TenantId
from gateway.domain.plans import RequestPlan
from gateway.domain.requests import Credential, UpstreamAnswer
from gateway.domain.tools import Tool
from gateway.handlers.port import Prepared, SecretReader
from gateway.upstream.credentials import apply
from gateway.upstream.pool import Upstream
from gateway.upstream.request import RequestBuilder

_SHORTEST_SECRET = 6
_decode_plan = msgspec.json.Decoder(RequestPlan).decode


class OperationHandler:
    """Runs one operation of one tenant."""

    def __init__(self, tenant: TenantId, tool: Tool, *, upstream: Upstream, secrets: SecretReader) -> None:
        self._tenant = tenant
        self._source = tool.source
        self._plan = _decode_plan(tool.plan)
        self._builder = RequestBuilder(self._plan)
        self._optional = frozenset(part.argument for part in self._plan.parameters if not part.required)
        self._upstream = upstream
        self._secrets = secrets

    def settle(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """The arguments without the optional parameters that are null: clients send null for what is not there."""
        if None not in arguments.values():
            return arguments
        return {name: value for name, value in arguments.items() if value is not None or name not in self._optional}

    def prepare(self, arguments: Mapping[str, object]) -> Prepared:
        """The request that these arguments make, without its credentials."""
        request = self._builder.build(arguments)
        seen = hashlib.blake2b(f"{request.method} {request.url}\n".encode(), digest_size=32)
        if request.headers:
            seen.update(repr(request.headers).encode())
        if request.body is not None:
            seen.update(request.body)
        return Prepared(request=request, digest=seen.digest(), summary=f"{request.method} {request.url}")

    async def run(self, prepared: Prepared) -> UpstreamAnswer:
        """Send it and return the answer; a credential that the upstream echoes is blanked out."""
        if not self._plan.security:
            return await self._upstream.send(prepared.request)
        stored = await self._secrets.credentials(self._tenant, self._source)
        answer = await self._upstream.send(apply(prepared.request, self._plan.security, stored))
        return _blank(answer, stored.values())


def _blank(answer: UpstreamAnswer, credentials: Iterable[Credential]) -> UpstreamAnswer:
    body = answer.body
    for credential in credentials:
        if len(credential.value) < _SHORTEST_SECRET:
            continue
        for form in {credential.value, quote(credential.value, safe="")}:
            secret = form.encode()
            if secret in body:
                body = body.replace(secret, b"***")
    return answer if body is answer.body else replace(answer, body=body)
