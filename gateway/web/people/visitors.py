"""Responses to browsers at URLs that are no pages: the start page `/`, and the page of the tenant of an MCP URL.

Neither reads the database, and both are the same for existing and missing tenants.
"""

import re

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.errors import NotFound
from gateway.web.html.documents import HEADERS, page, respond
from gateway.web.people.tenants import TenantLookup
from gateway.web.problems import correlation_id_of, problem

_VARIES = {"vary": "accept"}
_MCP_PATH = re.compile(r"/t/(?P<slug>[a-z0-9-]{1,63})(?:(?:/[^/]+)?/(?:mcp|sse))?")
_START = Markup("""
<p>This address serves tools, resources and prompts to clients of the Model Context Protocol (MCP).</p>
<dl>
<dt>An MCP client connects to</dt>
<dd><code>{origin}/t/TENANT/mcp</code>, or <code>{origin}/t/TENANT/PROFILE/mcp</code> for a profile, with the header
<code>Authorization: Bearer KEY</code>. Without a key, it signs you in, if the tenant has a sign-in.</dd>
<dt>To connect a client, open</dt>
<dd><code>{origin}/t/TENANT/</code>. After your sign-in, it shows the line for each known client.</dd>
</dl>
<p>Your administrator knows the name of the tenant. The <a href="/docs/errors">page of errors</a> explains refusals.</p>
""")


def start_route(tenants: TenantLookup) -> Route:
    """Return the route of the start page; a client that does not ask for HTML receives a problem document."""

    async def show(request: Request) -> Response:
        if "text/html" not in request.headers.get("accept", ""):
            error = NotFound("there is no such path; an MCP client connects to /t/TENANT/mcp")
            response = problem(error, correlation_id=correlation_id_of(request.scope))
            response.headers.update(_VARIES)
            return response
        content = _START.format(origin=tenants.origin_of(request))
        return respond(page("MCP gateway", content), headers={**HEADERS, **_VARIES})

    return Route("/", show, methods=["GET"])


def page_of(path: str) -> str | None:
    """Return the path of the tenant's page for the path of an MCP URL or of a tenant; None for any other path."""
    found = _MCP_PATH.fullmatch(path)  # guard: visitor-location
    return None if found is None else f"/t/{found['slug']}/"
