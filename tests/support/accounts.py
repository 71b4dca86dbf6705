"""An upstream's authorization server and API for tests of accounts, and the browser of a user who connects one."""

import base64
import re
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import httpx
import orjson

from gateway.identity.oauth.relying_party import challenge_of
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.pages import PAGE_HOOKS
from tests.support.serving import NO_TLS
from tests.support.upstream import RecordingUpstream, Seen

PUBLIC = "http://127.0.0.1:9"
"""The public URL of gateways in these tests: another one than the address, so a link never comes from a request."""
CLIENT = b"gateway-client:s3cret-of-the-client"


@dataclass(slots=True)
class AccountServer:
    """Issues tokens for codes and refresh tokens; each refresh token counts once. Tokens name the user."""

    upstream: RecordingUpstream
    life_s: int = 3600
    codes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    refresh_tokens: dict[str, str] = field(default_factory=dict[str, str])
    revoked: list[str] = field(default_factory=list[str])
    asked: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    returned: str = ""
    """An access token that is returned in every response."""
    error: str = ""
    """An error code to answer token requests with."""

    def start(self, **more: object) -> None:
        """Answer requests; `more` is metadata."""
        self.upstream.respond = lambda seen: self.respond(seen, more)

    def permit(self, location: str, user: str) -> dict[str, str]:
        """The response parameters with which a user comes back from the authorization endpoint."""
        asked = dict(parse_qsl(urlsplit(location).query))
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        code = f"code-{len(self.codes)}"
        self.codes[code] = {**asked, "user": user}
        return {"code": code, "state": asked["state"]}

    def respond(self, seen: Seen, more: dict[str, object]) -> bytes:
        """Metadata, tokens, or the confirmation of a revocation."""
        if seen.method != "POST":
            url = self.upstream.url
            found = {"issuer": url, "authorization_endpoint": f"{url}/authorize", "token_endpoint": f"{url}/token"}
            return orjson.dumps({**found, "revocation_endpoint": f"{url}/revoke", **more})
        form = {name: values[0] for name, values in parse_qs(seen.body.decode()).items()}
        assert base64.b64decode((seen.header("authorization") or "").removeprefix("Basic ")) == CLIENT
        if seen.target.endswith("/revoke"):
            self.revoked.append(form["token"])
            return b"{}"
        self.asked.append(form)
        user = self._user(form)
        self.upstream.status = 200 if user else 400
        if not user:
            return orjson.dumps({"error": self.error or "invalid_grant"})
        number = len(self.asked)
        refresh = f"{user}.refresh.{number}"
        self.refresh_tokens[refresh] = user
        token = self.returned or f"{user}.access.{number}"
        issued: dict[str, Any] = {"access_token": token, "token_type": "Bearer"}
        return orjson.dumps({**issued, "refresh_token": refresh, "expires_in": self.life_s, "scope": "read"})

    def _user(self, form: dict[str, str]) -> str | None:
        if self.error:
            return None
        if form["grant_type"] == "refresh_token":
            return self.refresh_tokens.pop(form["refresh_token"], None)
        asked = self.codes.pop(form["code"], None)
        if asked is None or challenge_of(form["code_verifier"]) != asked["code_challenge"]:
            return None
        return asked["user"] if form["redirect_uri"] == asked["redirect_uri"] else None


@dataclass(slots=True)
class UserBrowser:
    """A browser of one user at one gateway."""

    http: httpx.AsyncClient

    @classmethod
    def at(cls, gateway: RunningGateway) -> "UserBrowser":
        """A browser without cookies."""
        limits = httpx.Limits(max_keepalive_connections=0)  # no test has to close it
        headers = {"origin": gateway.url}
        return cls(
            httpx.AsyncClient(
                verify=NO_TLS,
                base_url=gateway.url,
                headers=headers,
                limits=limits,
                trust_env=False,
                event_hooks=PAGE_HOOKS,
            )
        )

    async def sign_in(self, key: str, tenant: str = "acme", target: str = "") -> httpx.Response:
        """Sign in with a key."""
        form = {"key": key, "next": target or f"/t/{tenant}/connect"}
        return await self.http.post(f"/t/{tenant}/connect/sign-in", data=form)

    async def open(self, url: str) -> httpx.Response:
        """Open a link of the gateway."""
        return await self.http.get(url.removeprefix(PUBLIC))

    async def begin(self, url: str) -> str:
        """Follow the link of an account's page to the server; return the server's URL."""
        shown = await self.open(url)
        assert shown.status_code == 200, shown.text
        link = re.search(r'href="([^"]*/begin\?[^"]*)"', shown.text)
        assert link is not None, shown.text
        answer = await self.http.get(unescape(link[1]))
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    async def come_back(self, answer: dict[str, str], name: str = "tracker", tenant: str = "acme") -> httpx.Response:
        """Come back from the server with its response."""
        return await self.http.get(f"/t/{tenant}/connect/{name}/callback", params=answer)

    async def connect(self, url: str, server: AccountServer, user: str, **more: str) -> httpx.Response:
        """Connect an account from its page."""
        return await self.come_back(server.permit(await self.begin(url), user), **more)


def user_credential(upstream: RecordingUpstream) -> dict[str, Any]:
    """The body of a credential `tracker`, for an upstream that is its own authorization server."""
    url = upstream.url
    return {
        "name": "tracker",
        "kind": "user",
        "place": "bearer",
        "origins": [url],
        "scopes": ["read"],
        "client_id": "gateway-client",
        "value": "s3cret-of-the-client",
        "parameters": {"access_type": "offline"},
        "authorization_url": f"{url}/authorize",
        "token_url": f"{url}/token",
    }


async def connect_account(database_url: str, redis_url: str, upstream: RecordingUpstream, *slugs: str) -> None:
    """Connect an account per tenant at a replica that has a public URL, since no other one connects any."""
    server = AccountServer(upstream)
    async with running_gateway(
        database_url, redis_url, egress_allow=[upstream.authority], public_url=PUBLIC
    ) as gateway:
        for slug in slugs:
            made = await gateway.admin.post(f"/tenants/{slug}/credentials", json=user_credential(upstream))
            made.raise_for_status()
            browser = UserBrowser.at(gateway)
            await browser.sign_in(await gateway.create_key(slug), slug)
            server.start()
            answer = await browser.connect(f"/t/{slug}/connect/tracker/account", server, "ada", tenant=slug)
            assert answer.status_code == 200, answer.text
            upstream.respond = None
