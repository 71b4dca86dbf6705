"""Layout of the HTML pages, their security headers, and the route of their style sheet.

Templates are `markupsafe.Markup`: its `format` escapes every argument that is not markup itself. Strings from callers
and upstreams pass through `visible` first, which also escapes control and bidirectional characters.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.resources import files

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.errors import GatewayError
from gateway.handlers.previews.requests import escape, truncate
from gateway.web.html.limits import MAX_TEXT_LENGTH
from gateway.web.problems import status_of

HEADERS: Mapping[str, str] = {
    "content-security-policy": "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # `no-referrer` would make the Origin of forms `null`
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_KIND = "text/html; charset=utf-8"
_STYLE = "/pages/style.css"
_PAGE = Markup("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} – MCP gateway</title>
<link rel="stylesheet" href="/pages/style.css">
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>{banner}</header>
<main id="main" tabindex="-1">
<h1>{title}</h1>
{content}
</main>
</body>
</html>
""")
_BANNER = Markup("<span>MCP gateway</span>")
_ALERT = Markup('<p class="alert" role="alert">{}</p>')


def style_route() -> Route:
    """Return the route of the style sheet of all pages."""
    style = files("gateway.web.html").joinpath("style.css").read_bytes()

    async def show(_: Request) -> Response:
        headers = {"cache-control": "public, max-age=3600"}
        return Response(style, headers=headers, media_type="text/css; charset=utf-8")

    return Route(_STYLE, show, methods=["GET"])


def page(title: str, content: Markup, *, banner: Markup = _BANNER) -> str:
    """Return a complete page."""
    return str(_PAGE.format(title=visible(title), banner=banner, content=content))


def visible(text: str) -> str:
    """Return an untrusted string on one line: truncated, with unprintable characters escaped."""
    return truncate(escape(text), MAX_TEXT_LENGTH)  # guard: console-visible


def alert(text: str) -> Markup:
    """Return an alert that screen readers announce; empty if `text` is empty."""
    return _ALERT.format(text) if text else Markup("")


def moment(at: datetime) -> Markup:
    """Return a timestamp with a precision of one minute."""
    at = at.astimezone(UTC)
    return Markup('<time datetime="{}">{} UTC</time>').format(
        at.isoformat(timespec="seconds"), at.strftime("%Y-%m-%d %H:%M")
    )


def respond(html: str, *, error: GatewayError | None = None, headers: Mapping[str, str] = HEADERS) -> Response:
    """Return the response with a page; with an error, it has the error's HTTP status."""
    added = dict(headers)
    status = 200 if error is None else status_of(error)
    if status == 401:
        added["www-authenticate"] = "Bearer"
    if error is not None and error.retry_after_s is not None:
        added["retry-after"] = str(max(1, round(error.retry_after_s)))
    return Response(html, status, headers=added, media_type=_KIND)


def refuse(error: GatewayError, *, title: str = "Not possible", headers: Mapping[str, str] = HEADERS) -> Response:
    """Return the error page of a refused request."""
    return respond(page(title, alert(error.message)), error=error, headers=headers)
