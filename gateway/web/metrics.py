"""Prometheus endpoint `/metrics`, which requires the metrics key or the operator's key.

The page contains tenant names, so a loopback client address does not give access: behind a proxy on the same machine,
every client has a loopback address.
"""

import hashlib
import hmac
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.domain.audit import OPERATOR_RULE
from gateway.domain.tenancy.configured_secret import ConfiguredSecret
from gateway.domain.tenancy.principals import Operator
from gateway.errors import Forbidden
from gateway.identity.authenticator import Authenticator
from gateway.identity.refusal_trail import note_refusal
from gateway.web.authentication import authenticate, authorization_of

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SCHEME = "bearer "


class MonitoringKeys:
    """The metrics key and the operator's key, which give access to monitoring data."""

    def __init__(self, credentials: Authenticator, *, key: ConfiguredSecret | None) -> None:
        self._credentials = credentials
        self._key = key

    def allow(self, request: Request) -> bool:
        """True if the request has one of the two keys, which are compared without the database."""
        return self._is_metrics_key(request) or self._credentials.is_operator(authorization_of(request.scope))

    async def check(self, request: Request) -> None:
        """Accept a request that has one of the two keys.

        Raises:
            Forbidden: the request has another valid credential.
            Unauthenticated, LimitExceeded, DatabaseUnavailable: see `authenticate`.
        """
        if not self._is_metrics_key(request):
            caller = await authenticate(request.scope, self._credentials)
            if not isinstance(caller, Operator):
                message = "only the operator and the metrics key may read this"
                refused = Forbidden(message, rule=OPERATOR_RULE)
                note_refusal(self._credentials.refusals, caller, refused, target=request.url.path)
                raise refused

    def _is_metrics_key(self, request: Request) -> bool:
        key = self._key
        return key is not None and hmac.compare_digest(_digest(_bearer(request)), _digest(key.value))


def metrics_routes(
    render: Callable[[], Awaitable[str]], credentials: Authenticator, *, key: ConfiguredSecret | None
) -> list[Route]:
    """Return the route of the page; `key` gives access to the page and to the reasons of `/readyz` only."""
    keys = MonitoringKeys(credentials, key=key)

    async def page(request: Request) -> Response:
        await keys.check(request)
        return Response(await render(), headers={"content-type": MEDIA_TYPE, "cache-control": "no-store"})

    return [Route("/metrics", page)]


def _bearer(request: Request) -> str:
    """Return the bearer token of the Authorization header; empty if there is none."""
    header = authorization_of(request.scope) or ""
    return header[len(_SCHEME) :].strip() if header[: len(_SCHEME)].lower() == _SCHEME else ""


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
