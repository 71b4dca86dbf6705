"""The page of a tenant for strangers, without anything that could be looked up."""

from typing import Any, cast

import httpx
from starlette.applications import Starlette

from gateway.web.console.sessions import ConsoleSessions
from gateway.web.people.sessions import PersonSessions
from gateway.web.people.sign_in import SignInPages
from gateway.web.people.tenant_page import PeoplePage


async def test_an_unauthenticated_request_looks_up_nothing() -> None:
    """Ours: neither time nor limits reveal to a stranger whether a tenant exists (IDN-2)."""
    nothing: Any = None
    keys = [bytes(32)]
    pages = SignInPages(nothing, nothing, PersonSessions(keys, nothing), keys=keys)
    page = PeoplePage(nothing, pages, ConsoleSessions(keys, nothing, nothing), nothing)
    transport = httpx.ASGITransport(cast("Any", Starlette(routes=page.routes)))
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway.example") as stranger:
        answers = [
            await stranger.get("/t/acme/"),
            await stranger.get("/t/acme/", headers={"cookie": "gateway-person-acme=junk"}),
        ]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert all("Sign in with your account" in answer.text for answer in answers)
