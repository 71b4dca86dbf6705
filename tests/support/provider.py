"""A certified OpenID provider on loopback, and people with a browser who sign in and consent wherever they are led."""

import json
import re
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urljoin

import anyio
import httpx

from tests.conformance.node import clean_environment, find_packages
from tests.deploy.sockets import free_port
from tests.support.serving import http_client

CLIENT_ID, CLIENT_SECRET = "gateway", "secret-of-the-gateway-at-the-provider"
_MAX_STEPS = 30


@dataclass(frozen=True, slots=True)
class Provider:
    """A running provider."""

    url: str
    """The issuer identifier."""

    @property
    def authority(self) -> str:
        """Host and port."""
        return self.url.removeprefix("http://")


@asynccontextmanager
async def running_provider(
    redirect_uris: Sequence[str] | None = None, *, token_format: Literal["jwt", "opaque"] | None = None
) -> AsyncGenerator[Provider]:
    """A provider that registers clients itself; with redirect URIs, one that knows the gateway as its only client.

    With a format of tokens it does both: the gateway is a client that asks about tokens.
    """
    port, packages = free_port(), find_packages("provider")
    command = ["node", str(Path(__file__).with_name("provider.mjs")), str(packages), str(port)]
    if redirect_uris is not None:
        client: dict[str, Any] = {
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            "redirect_uris": list(redirect_uris),
            "grant_types": ["authorization_code", "refresh_token"],
        }
        command.append(json.dumps([client]))
        command += [] if token_format is None else [token_format]
    process = await anyio.open_process(command, env=clean_environment(), stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        with anyio.fail_after(60):
            while b"listening" not in await process.stdout.receive():
                pass
        yield Provider(f"http://127.0.0.1:{port}")
    finally:
        process.kill()
        await process.wait()


@dataclass(slots=True)
class Visitor:
    """A person with a browser: keeps cookies, follows redirects, and sends forms as a browser does.

    At the provider the person enters `name`; at the gateway, forms are sent with the button `choice`.
    """

    name: str
    until: str
    """The URL, without its query, at which the person stops."""
    choice: str = "allow"
    http: httpx.AsyncClient = field(default_factory=lambda: http_client(timeout=30))
    seen: list[httpx.Response] = field(default_factory=list[httpx.Response])
    """Every response on the way, the last one of a journey at the end."""

    async def go(self, url: str) -> str:
        """Open a URL, and go on until the URL `until` is reached; return it with its query."""
        answer = await self._get(url)
        for _ in range(_MAX_STEPS):
            if answer.is_redirect:
                url = urljoin(str(answer.url), answer.headers["location"])
                if url.partition("?")[0] == self.until:
                    return url
                answer = await self._get(url)
            else:
                answer = await self._send_form(answer)
        raise AssertionError(f"{self.name} was led on for ever")

    async def _get(self, url: str) -> httpx.Response:
        answer = await self.http.get(url)
        self.seen.append(answer)
        return answer

    async def _send_form(self, page: httpx.Response) -> httpx.Response:
        form = re.search(r'<form[^>]*action="([^"]+)"', page.text)
        assert form, page.text
        hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text)
        fields = {name: unescape(value) for name, value in hidden}
        if 'name="choice"' in page.text:
            fields["choice"] = self.choice
        elif 'name="prompt"' in page.text:
            fields |= {"login": self.name, "password": "any"}
        url = urljoin(str(page.url), form[1])
        origin = "/".join(url.split("/")[:3])
        answer = await self.http.post(url, data=fields, headers={"origin": origin})
        self.seen.append(answer)
        return answer

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()
