"""`Idempotency-Key` on POST requests (draft-ietf-httpapi-idempotency-key-header): run once, then replay the response.

A repeated request passes the same checks of credential, scopes and limits as the first request. The stored response
is decrypted only after these checks.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio
import structlog
from starlette.requests import Request
from starlette.responses import Response

from gateway.admin.endpoint import AdminDependencies, Received, Route
from gateway.admin.limits import RELEASE_TIMEOUT_S
from gateway.catalog.idempotency import KeyedRequest, keep, release, reserve
from gateway.domain.http.idempotency import Attempt, StoredResponse
from gateway.errors import BadInput, GatewayError

log = structlog.get_logger(__name__)

HEADER = "idempotency-key"
REPLAYED = "idempotency-replayed"

_QUOTED = re.compile(r'"([\x20-\x21\x23-\x5b\x5d-\x7e]{1,255})"')
_BARE = re.compile(r"[\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]{1,255}")
_INVALID_KEY = "Idempotency-Key must be 1 to 255 printable ASCII characters without quotes, commas and backslashes"
_KEPT_HEADERS = ("cache-control", "content-type", "etag", "location")


def takes_key(method: str, path: str) -> bool:
    """True if a route supports the header: every POST inside a tenant."""
    return method == "POST" and "{t}" in path


def read_key(request: Request) -> str | None:
    """Return the key, written bare or as a quoted string (RFC 8941); None without the header.

    Raises:
        BadInput: the key has another form, or the header is sent more than once.
    """
    values = request.headers.getlist(HEADER)
    if not values:
        return None
    found = _QUOTED.fullmatch(values[0].strip()) if len(values) == 1 else None
    if found is not None:
        return found[1]
    if len(values) > 1 or not _BARE.fullmatch(values[0].strip()):
        raise BadInput(_INVALID_KEY)
    return values[0].strip()


async def respond_once(
    admin: AdminDependencies,
    route: Route,
    received: Received,
    key: str,
    *,
    handler: Callable[[Received], Awaitable[Response]],
) -> Response:
    """Return the response to the first request with this key, newly executed or replayed.

    Raises:
        IdempotencyKeyReused, RequestInProgress, AnswerNotKept: see `gateway.catalog.idempotency.reserve`.
        GatewayError: the request itself failed; the key is released.
    """
    request = KeyedRequest(caller=received.by.caller, key=key, parts=_parts(route, received))
    found = await reserve(received.tenant, admin.catalog, request)
    if isinstance(found, StoredResponse):
        headers = {**found.headers, REPLAYED: "true"}
        return Response(found.body, found.status, headers=headers)
    try:
        response = await handler(replace(received, by=replace(received.by, attempt=found)))
    # Cancellation too: a client that disconnects must not hold its key until the lease ends.
    except BaseException:
        await _release(admin, received, found)
        raise
    await _store_response(admin, received, found, response)
    return response


def _parts(route: Route, received: Received) -> list[bytes]:
    """Return the parts that identify the request: route, path parameters, query, expected version and body."""
    named = sorted((name, value) for name, value in received.path.items() if name != "t")
    expected = sorted(received.expected or ())
    texts = [route.method, route.path, repr(named), repr(sorted(received.query)), repr(expected)]
    return [*(text.encode("utf-8", "surrogatepass") for text in texts), received.body]


async def _release(admin: AdminDependencies, received: Received, attempt: Attempt) -> None:
    """Release the key so that a failed request can be retried; if this fails, the lease expires."""
    with anyio.move_on_after(RELEASE_TIMEOUT_S, shield=True):
        try:
            await release(received.tenant, admin.catalog, attempt)
        except GatewayError as error:
            log.warning("idempotency_release_failed", reason=error.message)


async def _store_response(admin: AdminDependencies, received: Received, attempt: Attempt, response: Response) -> None:
    """Store the response. A failure is only logged, because the request was executed and its response must be sent."""
    headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
    kept = StoredResponse(status=response.status_code, headers=headers, body=bytes(response.body))
    try:
        await keep(received.tenant, admin.catalog, attempt, kept)
    except GatewayError as error:
        log.warning("idempotent_answer_lost", reason=error.message)
