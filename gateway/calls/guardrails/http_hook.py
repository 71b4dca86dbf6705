"""HTTP hooks of guardrails: a signed POST (Standard Webhooks) with the call or its result; the response allows
or blocks it.

A hook receives arguments and results, but no credentials, because the handler adds them later. Each hook of a tenant
has its own bulkhead and circuit breaker. So a slow hook delays only the calls that it checks. If the hook's
receiver calls the same tool recursively, the recursion ends when all slots are in use.
"""

import asyncio
import time
from secrets import token_hex
from typing import Literal

import anyio
import msgspec

from gateway.calls.guardrails.limits import (
    MAX_EXAMINED,
    MAX_HOOKS,
    MAX_REASON_LENGTH,
    MAX_REQUEST_BYTES,
    MAX_RESPONSE_BYTES,
)
from gateway.catalog.updates.signatures import is_secret, sign
from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.domain.http.requests import UpstreamRequest
from gateway.domain.identifiers import GuardrailId, TenantId
from gateway.domain.refusals import UpstreamSuspended
from gateway.domain.tenancy.guardrails import Guardrail, HookSettings
from gateway.errors import UpstreamAnswerBroken, UpstreamBusy, UpstreamError
from gateway.handlers.credentials import is_among
from gateway.handlers.interfaces import SecretReader
from gateway.handlers.previews.requests import escape, truncate
from gateway.upstream.auth.credentials import digest_of
from gateway.upstream.bulkhead import Bulkhead, BulkheadLimits
from gateway.upstream.client import UpstreamClient

_LIMITS = BulkheadLimits(at_once=16, waiting=32, wait_s=1.0, failures=5, rest_s=10.0)
_OK = 200


class HookResponse(msgspec.Struct, frozen=True):
    """The response of a hook; other members are ignored."""

    action: Literal["allow", "block"]
    reason: str = ""


class HookFailed(Exception):
    """The hook returned no valid response in time; `reason` is for logs and for the client."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class HookEvaded(HookFailed):
    """The content prevents the request to the hook. Caller or upstream choose the content, so this never fails open."""


_decode = msgspec.json.Decoder(HookResponse).decode
_encode = msgspec.json.encode


class HookClient:
    """Sends the requests of all HTTP hooks of this replica."""

    def __init__(self, upstream: UpstreamClient, secrets: SecretReader) -> None:
        self._upstream = upstream
        self._secrets = secrets
        self._bulkheads = BoundedCache[tuple[TenantId, GuardrailId], Bulkhead](MAX_HOOKS)

    async def ask(self, tenant: TenantId, guardrail: Guardrail, hook: HookSettings, event: object) -> HookResponse:
        """Return the hook's response.

        Raises:
            HookFailed: the hook cannot be called, or returned no valid response in time.
            HookEvaded: the event is too large.
        """
        if guardrail.is_barred:  # guard: guardrail-hook-policy
            raise HookFailed("the tenant's policy does not allow requests to its origin")
        body = _encode(event)
        if len(body) > MAX_REQUEST_BYTES:  # guard: guardrail-hook-request-size
            raise HookEvaded(f"the value to check has more than {MAX_REQUEST_BYTES} bytes")
        try:
            with anyio.fail_after(hook.timeout_ms / 1000):  # guard: guardrail-hook-time
                return await self._ask(tenant, guardrail, hook, body)
        except TimeoutError:
            self._bulkhead(tenant, guardrail.id).fail(asyncio.get_running_loop())
            raise HookFailed(f"it did not respond within {hook.timeout_ms} ms") from None

    async def _ask(self, tenant: TenantId, guardrail: Guardrail, hook: HookSettings, body: bytes) -> HookResponse:
        request = await self._request(tenant, hook, body)
        bulkhead = self._bulkhead(tenant, guardrail.id)
        try:
            if not bulkhead.admit():
                await bulkhead.wait(asyncio.get_running_loop())
        except (UpstreamBusy, UpstreamSuspended) as error:
            raise HookFailed(error.message) from None
        try:
            response = await self._upstream.send(request, tenant=tenant, limit_bytes=MAX_RESPONSE_BYTES)
            found = _read(response.status, response.body)
            bulkhead.succeed()
        except UpstreamError as error:
            bulkhead.fail(asyncio.get_running_loop())
            raise HookFailed(error.message) from None
        finally:
            bulkhead.leave()
        return found

    async def _request(self, tenant: TenantId, hook: HookSettings, body: bytes) -> UpstreamRequest:
        """Build the signed request.

        Raises:
            HookFailed: the credential is missing, is not a signing secret, or may not be used for this origin.
        """
        named = await self._secrets.named(tenant, hook.credential)
        if named is None or not is_among(hook.url, named.origins):  # guard: guardrail-hook-origin
            raise HookFailed(f"the credential {hook.credential} is not stored for its origin")
        secret = named.credential.value
        if not is_secret(secret):
            raise HookFailed(f"the credential {hook.credential} is not a signing secret")
        delivery, at = f"msg_{token_hex(16)}", str(int(time.time()))
        headers = (
            ("content-type", "application/json"),
            ("accept", "application/json"),
            ("webhook-id", delivery),
            ("webhook-timestamp", at),
            ("webhook-signature", sign(secret, delivery=delivery, at=at, body=body)),
        )
        return UpstreamRequest(method="POST", url=hook.url, headers=headers, body=body, credential=digest_of((secret,)))

    def _bulkhead(self, tenant: TenantId, guardrail: GuardrailId) -> Bulkhead:
        found = self._bulkheads.get((tenant, guardrail))
        if found is None:
            found = self._bulkheads[tenant, guardrail] = Bulkhead(_LIMITS, (tenant, f"guardrail {guardrail}"))
        return found


def _read(status: int, body: bytes) -> HookResponse:
    if status != _OK:  # guard: guardrail-hook-status
        raise UpstreamAnswerBroken(f"it responded with status {status}")
    try:
        found = _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise UpstreamAnswerBroken("its response has no valid action") from None
    return HookResponse(found.action, truncate(escape(found.reason[:MAX_EXAMINED]), MAX_REASON_LENGTH))
