"""The SDK's own OAuth flow against a certified provider: a client connects with nothing but the URL."""

import json
import re
import socket
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urljoin, urlsplit

import anyio
import httpx
import httpx2
import pytest
from anyio.streams.text import TextReceiveStream
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from tests.conformance.node import clean_environment, find_packages
from tests.support.documents import pets
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.servers import TestServers
from tests.support.upstream import RecordingUpstream, recording_upstream

HERE = Path(__file__).parent
NAMES = ("ada", "bob")
Mode = Literal["legacy", "2026-07-28"]
BACK = "http://127.0.0.1:9/callback"
"""Where the client is sent with its code; no server is there, the person of the test reads the code from the URL."""


@asynccontextmanager
async def running_provider() -> AsyncGenerator[str]:
    """The issuer identifier of a provider."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    packages = find_packages("provider")
    command = ["node", str(HERE / "provider.mjs"), str(packages), str(port)]
    process = await anyio.open_process(command, env=clean_environment(), stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        with anyio.fail_after(60):
            while b"listening" not in await process.stdout.receive():
                pass
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        await process.wait()


@dataclass(slots=True)
class Storage:
    """What a client keeps."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@dataclass(slots=True)
class Person:
    """Somebody with a browser, who signs in and consents wherever the client leads."""

    name: str
    storage: Storage = field(default_factory=Storage)
    came_back: str = ""

    async def go(self, url: str) -> None:
        """Follow redirects and send forms until the client's own URL is reached."""
        async with httpx.AsyncClient(trust_env=False) as browser:
            answer = await browser.get(url)
            for _ in range(20):
                if answer.is_redirect:
                    url = urljoin(str(answer.url), answer.headers["location"])
                    if url.startswith(BACK):
                        self.came_back = url
                        return
                    answer = await browser.get(url)
                    continue
                form = re.search(r'<form[^>]*action="([^"]+)"', answer.text)
                prompt = re.search(r'name="prompt" value="(\w+)"', answer.text)
                assert form, answer.text
                assert prompt, answer.text
                filled = {"prompt": prompt[1], "login": self.name, "password": "any"}
                answer = await browser.post(urljoin(str(answer.url), form[1]), data=filled)
        raise AssertionError("the provider never came back to the client")

    async def read_code(self) -> AuthorizationCodeResult:
        """The code in the URL to which the provider sent the person."""
        query = parse_qs(urlsplit(self.came_back).query)
        return AuthorizationCodeResult(code=query["code"][0], state=query["state"][0], iss=query.get("iss", [None])[0])

    def provider(self, url: str) -> OAuthClientProvider:
        """The SDK's flow for this person."""
        metadata = OAuthClientMetadata(client_name="a client", redirect_uris=[AnyUrl(BACK)])
        return OAuthClientProvider(url, metadata, self.storage, self.go, self.read_code)


@dataclass(frozen=True, slots=True)
class Place:
    """A gateway whose tenant `acme` admits the users of a provider, and the API behind its tools."""

    gateway: RunningGateway
    upstream: RecordingUpstream

    @property
    def url(self) -> str:
        """All that a client is given."""
        return f"{self.gateway.url}/t/acme/mcp"

    async def check(self, token: str, *names: str) -> None:
        """The calls are those of these people, and the token went nowhere."""
        entries = (await self.gateway.admin.get("/tenants/acme/audit?tool=list_pets")).json()["items"]
        assert [entry["principal"] for entry in reversed(entries)] == [f"user:corp:{name}" for name in names]
        assert not [seen for seen in self.upstream.seen if token in repr(seen)]


@pytest.fixture
async def place(servers: TestServers) -> AsyncGenerator[Place]:
    """A provider, and a gateway that accepts its tokens."""
    with servers.database() as database:
        async with (
            running_provider() as issuer,
            recording_upstream() as upstream,
            running_gateway(
                database.app_url, servers.empty_redis(), egress_allow=[upstream.authority, urlsplit(issuer).netloc]
            ) as gateway,
        ):
            await gateway.create_tenant("acme")
            await gateway.import_document("acme", pets(upstream.url))
            body = {"name": "corp", "url": issuer, "rules": [{"scope": "tools"}]}
            made = await gateway.admin.post("/tenants/acme/issuers", json=body)
            assert made.status_code == 201, made.text
            yield Place(gateway, upstream)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_sdk_for_python_signs_in_with_nothing_but_the_url(place: Place, mode: Mode) -> None:
    """MCP: discovery, registration, sign-in, token and calls of two people, each with an own subject (TEN-2)."""
    for count, name in enumerate(NAMES, 1):
        person = Person(name)
        async with (
            httpx2.AsyncClient(auth=person.provider(place.url), timeout=30, trust_env=False) as http,
            Client(streamable_http_client(place.url, http_client=http), mode=mode) as client,
        ):
            result = await client.call_tool("list_pets", {})
        assert not result.is_error
        assert person.storage.tokens is not None
        await place.check(person.storage.tokens.access_token, *NAMES[:count])


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_sdk_for_typescript_signs_in_with_nothing_but_the_url(place: Place, mode: Mode) -> None:
    """MCP: the same with the other official SDK (TEN-2)."""
    command = ["node", str(HERE / "sign_in.mjs"), place.url, mode, BACK]
    environment = clean_environment() | {"EXAM_PACKAGES": str(find_packages("clients"))}
    async with await anyio.open_process(command, env=environment, stderr=None) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        lines = TextReceiveStream(process.stdout)
        person = Person("ada")
        with anyio.fail_after(60):
            await person.go(json.loads(await lines.receive())["go"])
            await process.stdin.send(f"{person.came_back}\n".encode())
            seen = json.loads(await lines.receive())

    assert seen["failed"] is False
    await place.check(seen["token"], "ada")
