"""An application and the browser of its person at the authorization server of a tenant, step by step."""

import base64
import hashlib
import re
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx

from tests.support.gateway import RunningGateway
from tests.support.issuer import LocalProvider

BACK = "https://client.example/callback"
"""The redirect URI of applications; nothing is sent there."""
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")


def query_of(answer: httpx.Response) -> dict[str, str]:
    """The parameters of the URL to which a response leads."""
    found = parse_qs(urlsplit(answer.headers["location"]).query)
    return {name: values[0] for name, values in found.items()}


def fields_of(page: httpx.Response) -> dict[str, str]:
    """The hidden fields of a page's form."""
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text)
    return {name: unescape(value) for name, value in found}


@dataclass(slots=True)
class InTurn(httpx.AsyncBaseTransport):
    """A load balancer without affinity: requests to the public URL go to the replicas in turn."""

    replicas: list[httpx.URL]
    inner: httpx.AsyncHTTPTransport = field(default_factory=httpx.AsyncHTTPTransport)
    count: int = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request to the next replica; the host that it names stays the public one."""
        replica = self.replicas[self.count % len(self.replicas)]
        self.count += 1
        url = request.url.copy_with(scheme=replica.scheme, host=replica.host, port=replica.port)
        sent = httpx.Request(request.method, url, headers=request.headers, stream=request.stream)
        return await self.inner.handle_async_request(sent)

    async def aclose(self) -> None:
        """Close the connections to the replicas."""
        await self.inner.aclose()


@dataclass(slots=True)
class Application:
    """One application of one person; a parameter of None is not sent."""

    gateway: RunningGateway
    provider: LocalProvider
    client_id: str
    http: httpx.AsyncClient
    """The browser of the person."""
    slug: str = "acme"
    redirect_uri: str = BACK
    secret: str | None = None
    claims: dict[str, Any] = field(default_factory=dict[str, Any])
    """Claims of the provider about the person."""

    @property
    def resource(self) -> str:
        """The tenant's MCP URL."""
        return f"{self.gateway.url}/t/{self.slug}/mcp"

    @property
    def issuer(self) -> str:
        """The identifier of the tenant's authorization server."""
        return f"{self.gateway.url}/t/{self.slug}"

    async def authorize(self, **more: str | None) -> httpx.Response:
        """The response to an authorization request, which leads to a page of the gateway."""
        standard = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "resource": self.resource,
            "state": "state of the client",
        }
        sent = {name: value for name, value in {**standard, **more}.items() if value is not None}
        return await self.http.get(f"{self.issuer}/oauth/authorize", params=sent)

    async def open(self, **more: str | None) -> httpx.Response:
        """The response to an authorization request after the person has signed in: a page, or the way back."""
        return await self.follow(await self.authorize(**more))

    async def follow(self, answer: httpx.Response) -> httpx.Response:
        """The first response that does not lead to the gateway or the provider."""
        while answer.is_redirect:
            url = urljoin(str(answer.url), answer.headers["location"])
            if url.startswith(f"{self.provider.issuer.url}/"):
                asked = query_of(answer)
                self.provider.publish(**{"nonce": asked["nonce"], **self.claims})
                answered = {"code": "code", "state": asked["state"]}
                answer = await self.http.get(asked["redirect_uri"], params=answered)
            elif url.startswith(f"{self.gateway.url}/"):
                answer = await self.http.get(url)
            else:
                return answer
        return answer

    async def decide(self, page: httpx.Response, choice: str | None = "allow", **more: str) -> httpx.Response:
        """The response to the form of the consent page."""
        fields = {**fields_of(page), **({} if choice is None else {"choice": choice}), **more}
        headers = {"origin": self.gateway.url}
        return await self.http.post(f"{self.issuer}/oauth/consent", data=fields, headers=headers)

    async def code(self, **more: str | None) -> str:
        """The code of a request to which the person consents, if asked."""
        answer = await self.open(**more)
        assert not answer.is_error, answer.text
        answer = answer if answer.is_redirect else await self.decide(answer)
        assert answer.is_redirect, answer.text
        return query_of(answer)["code"]

    async def token(self, **fields: str | None) -> httpx.Response:
        """The response of the token endpoint."""
        standard = {"client_id": self.client_id, "client_secret": self.secret}
        sent = {name: value for name, value in {**standard, **fields}.items() if value is not None}
        return await self.gateway.http.post(f"/t/{self.slug}/oauth/token", data=sent)

    async def redeem(self, code: str, **more: str | None) -> httpx.Response:
        """The response to a code."""
        standard = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER}
        return await self.token(**{**standard, "redirect_uri": self.redirect_uri, **more})

    async def refresh(self, token: str, **more: str | None) -> httpx.Response:
        """The response to a refresh token."""
        return await self.token(grant_type="refresh_token", refresh_token=token, **more)

    async def tokens(self, **more: str | None) -> dict[str, Any]:
        """The tokens of a request to which the person consents."""
        answer = await self.redeem(await self.code(**more))
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def status(self, token: str, place: str | None = None) -> int:
        """The status of a call with an access token."""
        return (await self.gateway.rpc(place or self.slug, token, "tools/list")).status_code


async def register(gateway: RunningGateway, slug: str = "acme", **more: Any) -> dict[str, Any]:
    """A client that the administrator of a tenant registers."""
    body = {"name": "Reports", "redirect_uris": [BACK], **more}
    made = await gateway.admin.post(f"/tenants/{slug}/clients", json=body)
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found
