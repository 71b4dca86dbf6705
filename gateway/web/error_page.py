"""`/docs/errors`, the target of the `type` of every problem document: one row for each error code.

The page is the same for every tenant; it is served without a credential, on every listener.
"""

import hashlib
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

PATH = "/docs/errors"

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def error_page_route() -> Route:
    """Return the route of the page, whose content is loaded from the package once."""
    page = files("gateway.web").joinpath("errors.html").read_bytes()
    headers = {
        "etag": f'"{hashlib.blake2b(page, digest_size=8).hexdigest()}"',
        "cache-control": "public, max-age=3600",
        "content-security-policy": _POLICY,
        "x-content-type-options": "nosniff",
    }

    async def respond(_: Request) -> Response:
        return Response(page, headers=headers, media_type="text/html; charset=utf-8")

    return Route(PATH, respond)
