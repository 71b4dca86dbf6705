"""What Prometheus reads: `/metrics`, for whoever holds the key for it or the operator's.

It stands on the listener of everything else and names tenants, so an address is not enough: behind a proxy on the same
machine everybody comes from loopback.
"""

import hashlib
import hmac

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.domain.principals import Operator
from gateway.errors import Forbidden
from gateway.identity.credentials import Credentials
from gateway.telemetry.metrics import Metrics
from gateway.web.authentication import authenticate, authorization_of

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SCHEME = "bearer "


def metrics_routes(metrics: Metrics, credentials: Credentials, *, key: str | None) -> list[Route]:
    """The page; `key` opens it and nothing else."""
    wanted = None if key is None else _digest(key)

    async def page(request: Request) -> Response:
        if wanted is None or not hmac.compare_digest(_digest(_bearer(request)), wanted):
            caller = await authenticate(request.scope, credentials)
            if not isinstance(caller, Operator):
                raise Forbidden("only the operator and the metrics key may read this")
        return Response(metrics.render(), headers={"content-type": MEDIA_TYPE, "cache-control": "no-store"})

    return [Route("/metrics", page)]


def _bearer(request: Request) -> str:
    """What the header offers; empty when it is none of ours, which no key is."""
    header = authorization_of(request.scope) or ""
    return header[len(_SCHEME) :].strip() if header[: len(_SCHEME)].lower() == _SCHEME else ""


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
