"""The SDK's own OAuth flow against a certified provider: a client connects with nothing but the URL."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
import httpx2
import orjson
import pytest
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from gateway.identity.oauth.relying_party import challenge_of
from tests.conformance.node import clean_environment, find_packages
from tests.support.certificates import self_signed
from tests.support.documents import pets
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.proofs import ProofKey
from tests.support.provider import CLIENT_ID, CLIENT_SECRET, Visitor, running_provider
from tests.support.replicas import until
from tests.support.servers import TestServers, execute
from tests.support.serving import NO_TLS
from tests.support.upstream import RecordingUpstream, recording_upstream

HERE = Path(__file__).parent
LIFE_S = 4
NAMES = ("ada", "bob")
Mode = Literal["legacy", "2026-07-28"]
Known = Literal["issuer", "document", "registration", "administrator"]
"""Registration of the client: at the tenant's own issuer, or the gateway, by a metadata document or a registration."""
MODES: tuple[Mode, ...] = ("legacy", "2026-07-28")
KNOWN: tuple[Known, ...] = ("issuer", "document", "registration", "administrator")
CALLBACK = "/t/acme/sign-in/corp/callback"
BACK = "http://127.0.0.1:9/callback"
"""Redirect URI for the client's code; no server is there, the person of the test reads the code from the URL."""


def _cases(first: Mode) -> list[Any]:
    """Each kind of client in both modes in turn; one of them is a long case, because the sign-in precedes both."""
    start = MODES.index(first)
    return [
        pytest.param(known, mode, marks=() if MODES[(start + number) % 2] == mode else pytest.mark.long)
        for number, known in enumerate(KNOWN)
        for mode in MODES
    ]


@dataclass(slots=True)
class Storage:
    """Stored state of a client."""

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
    """A person with a browser and a client."""

    name: str
    document: str | None = None
    """The URL of the client's metadata document."""
    storage: Storage = field(default_factory=Storage)
    came_back: str = ""
    sign_ins: int = 0

    async def go(self, url: str) -> None:
        """Sign in and consent until the client's own URL is reached."""
        self.sign_ins += 1
        async with Visitor(self.name, until=BACK) as visitor:
            self.came_back = await visitor.go(url)

    async def read_code(self) -> AuthorizationCodeResult:
        """The code in the URL to which the provider sent the person."""
        query = parse_qs(urlsplit(self.came_back).query)
        return AuthorizationCodeResult(code=query["code"][0], state=query["state"][0], iss=query.get("iss", [None])[0])

    def provider(self, url: str) -> OAuthClientProvider:
        """The SDK's flow for this person."""
        metadata = OAuthClientMetadata(client_name="a client", redirect_uris=[AnyUrl(BACK)])
        return OAuthClientProvider(url, metadata, self.storage, self.go, self.read_code, self.document)


@dataclass(frozen=True, slots=True)
class Place:
    """A gateway whose tenant `acme` admits the users of a provider, and the API behind its tools."""

    gateway: RunningGateway
    upstream: RecordingUpstream
    document: str | None
    client: OAuthClientInformationFull | None
    """Credentials that the administrator gave to the client."""
    has_short_tokens: bool = False
    """True if the gateway's access tokens end after `LIFE_S`."""

    @property
    def url(self) -> str:
        """All that a client is given."""
        return f"{self.gateway.url}/t/acme/mcp"

    def person(self, name: str) -> Person:
        """A person of this name, with a client."""
        return Person(name, self.document, Storage(client=self.client))

    async def wait_for_end(self, token: str) -> None:
        """Wait until an access token has expired."""

        async def is_refused() -> bool:
            return (await self.gateway.rpc("acme", token, "tools/list")).status_code == 401

        await until(is_refused, seconds=LIFE_S + 10, pause=0.1)

    async def check_reuse(self, client: OAuthClientInformationFull, first: str, second: str) -> None:
        """A refresh token that was replaced by the second ends the grant, also for the holder of its successors."""

        async def refresh(token: str) -> dict[str, Any]:
            form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": client.client_id}
            answer = await self.gateway.http.post("/t/acme/oauth/token", data=form)
            found: dict[str, Any] = answer.json()
            return found

        third = (await refresh(second))["refresh_token"]
        assert [(await refresh(token)).get("error") for token in (first, third)] == ["invalid_grant"] * 2
        trail = (await self.gateway.admin.get("/tenants/acme/audit")).json()["items"]
        assert "grant.end" in {entry["action"] for entry in trail}

    async def check(self, token: str, *names: str) -> None:
        """The calls are those of these people, and the token went nowhere."""
        entries = (await self.gateway.admin.get("/tenants/acme/audit?tool=list_pets")).json()["items"]
        assert [entry["principal"] for entry in reversed(entries)] == [f"user:corp:{name}" for name in names]
        assert not [seen for seen in self.upstream.seen if token in repr(seen)]


@pytest.fixture
async def place(
    servers: TestServers, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Place]:
    """A provider, and a gateway that accepts its tokens, or is the issuer in front of it."""
    known: Known = request.param
    certificate = self_signed(tmp_path, "client.test")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))  # the gateway reads it when it starts
    with servers.database() as database:
        async with (
            recording_upstream() as upstream,
            recording_upstream(certificate) as documents,
            running_gateway(
                database.app_url, servers.empty_redis(), egress_allow=[upstream.authority, documents.authority]
            ) as gateway,
            running_provider(None if known == "issuer" else [f"{gateway.url}{CALLBACK}"]) as provider,
        ):
            await gateway.create_tenant("acme")
            await gateway.import_document("acme", pets(upstream.url))
            await gateway.admin.put("/tenants/acme/egress", json={"allow": [provider.authority]})
            sign_in = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "registration": known == "registration"}
            body: dict[str, Any] = {"name": "corp", "url": provider.url, "rules": [{}], "sign_in": sign_in}
            if known == "issuer":
                body |= {"rules": [{"scope": "tools"}], "sign_in": None}
            made = await gateway.admin.post("/tenants/acme/issuers", json=body)
            assert made.status_code == 201, made.text
            document = f"https://{documents.authority}/client.json" if known == "document" else None
            documents.body = orjson.dumps({"client_id": document, "client_name": "a client", "redirect_uris": [BACK]})
            client = await _register(gateway) if known == "administrator" else None
            if is_short := known == "registration":  # the API permits no lifetime of less than a minute
                await execute(database.superuser_url, f"update issuers set max_lifetime_s = {LIFE_S}")
            yield Place(gateway, upstream, document, client, is_short)


async def _register(gateway: RunningGateway) -> OAuthClientInformationFull:
    body = {"name": "a client", "redirect_uris": [BACK], "confidential": True}
    made = await gateway.admin.post("/tenants/acme/clients", json=body)
    assert made.status_code == 201, made.text
    found = made.json()
    return OAuthClientInformationFull(
        client_id=found["id"],
        client_secret=found["secret"],
        token_endpoint_auth_method="client_secret_basic",
        redirect_uris=[AnyUrl(BACK)],
    )


@dataclass(frozen=True, slots=True)
class TypeScriptClient:
    """The process of the SDK's client for TypeScript, and its lines."""

    process: Process
    lines: TextReceiveStream

    async def speak(self, line: str) -> None:
        """Send a line to the client."""
        assert self.process.stdin is not None
        await self.process.stdin.send(f"{line}\n".encode())

    async def sign_in(self, person: Person) -> dict[str, Any]:
        """Go where the client sends its user, and return what it saw then."""
        with anyio.fail_after(60):
            await person.go(json.loads(await self.lines.receive())["go"])
            await self.speak(person.came_back)
            seen: dict[str, Any] = json.loads(await self.lines.receive())
        return seen


@asynccontextmanager
async def _typescript(place: Place, mode: Mode) -> AsyncGenerator[TypeScriptClient]:
    known = None if place.client is None else place.client.model_dump(mode="json", exclude_none=True)
    given = json.dumps({"document": place.document, "client": known})
    command = ["node", str(HERE / "sign_in.mjs"), place.url, mode, BACK, given]
    environment = clean_environment() | {"EXAM_PACKAGES": str(find_packages("clients"))}
    async with await anyio.open_process(command, env=environment, stderr=None) as process:
        assert process.stdout is not None
        yield TypeScriptClient(process, TextReceiveStream(process.stdout))
        await TypeScriptClient(process, TextReceiveStream(process.stdout)).speak("")


@asynccontextmanager
async def _issuing_place(servers: TestServers) -> AsyncGenerator[Place]:
    """A gateway whose tenant accepts the JWTs of a provider, from people with the scope `tools`."""
    with servers.database() as database:
        async with (
            recording_upstream() as upstream,
            running_gateway(database.app_url, servers.empty_redis(), egress_allow=[upstream.authority]) as gateway,
            running_provider() as provider,
        ):
            await gateway.create_tenant("acme")
            await gateway.import_document("acme", pets(upstream.url))
            await gateway.admin.put("/tenants/acme/egress", json={"allow": [provider.authority]})
            body = {"name": "corp", "url": provider.url, "rules": [{"scope": "tools"}]}
            made = await gateway.admin.post("/tenants/acme/issuers", json=body)
            assert made.status_code == 201, made.text
            # this provider grants a client that registers itself no other scopes than those of its registration
            metadata = {"redirect_uris": [BACK], "token_endpoint_auth_method": "none"}
            async with httpx2.AsyncClient(verify=NO_TLS, trust_env=False) as http:
                registered = (await http.post(f"{provider.url}/reg", json=metadata)).raise_for_status()
            yield Place(gateway, upstream, None, OAuthClientInformationFull.model_validate(registered.json()))


async def _demand(place: Place, scope: str) -> None:
    """Admit only people with this scope."""
    changed = await place.gateway.admin.patch("/tenants/acme/issuers/corp", json={"rules": [{"scope": scope}]})
    assert changed.status_code == 200, changed.text


async def test_clients_step_up_when_a_rule_demands_another_scope(servers: TestServers) -> None:
    """MCP: a client whose token lacks a scope gets 403 `insufficient_scope`, signs in with both scopes, and calls:
    the SDKs for Python and TypeScript, in both eras (TEN-2, IDN-2).
    """
    async with _issuing_place(servers) as place:
        for mode in MODES:
            await _demand(place, "tools")
            ada, bob = place.person("ada"), place.person("bob")
            flow, scopes = ada.provider(place.url), list[str]()
            async with _typescript(place, mode) as typescript:
                assert (await typescript.sign_in(bob))["scope"] == "tools"
                async with (
                    httpx2.AsyncClient(auth=flow, timeout=30, verify=NO_TLS, trust_env=False) as http,
                    Client(streamable_http_client(place.url, http_client=http), mode=mode) as first,
                ):
                    assert not (await first.call_tool("list_pets", {})).is_error
                    assert ada.storage.tokens is not None
                    before = ada.storage.tokens
                    await _demand(place, "tools:write")
                    if mode != "legacy":  # a changed issuer ends sessions
                        assert not (await first.call_tool("list_pets", {})).is_error
                async with (
                    httpx2.AsyncClient(auth=flow, timeout=30, verify=NO_TLS, trust_env=False) as http,
                    Client(streamable_http_client(place.url, http_client=http), mode=mode) as second,
                ):
                    assert not (await second.call_tool("list_pets", {})).is_error
                await typescript.speak("again")
                seen = await typescript.sign_in(bob)
            refused = await place.gateway.rpc("acme", before.access_token, "tools/list")
            scopes += [before.scope or "", ada.storage.tokens.scope or "", seen["scope"]]

            assert scopes == ["tools", "tools tools:write", "tools tools:write"]
            assert seen["failed"] is False
            assert (refused.status_code, 'scope="tools:write"' in refused.headers["www-authenticate"]) == (403, True)


@pytest.mark.parametrize(("place", "mode"), _cases("legacy"), indirect=["place"])
async def test_the_sdk_for_python_signs_in_with_nothing_but_the_url(place: Place, mode: Mode) -> None:
    """MCP: discovery, registration, sign-in, token and calls of two people, each with an own subject (TEN-2, IDN-2).

    The client replaces an expired token of the gateway by itself; a refresh token that is used twice ends its grant.
    """
    for count, name in enumerate(NAMES, 1):
        person, renewed = place.person(name), ""
        async with (
            httpx2.AsyncClient(auth=person.provider(place.url), timeout=30, verify=NO_TLS, trust_env=False) as http,
            Client(streamable_http_client(place.url, http_client=http), mode=mode) as client,
        ):
            result = await client.call_tool("list_pets", {})
            assert person.storage.tokens is not None
            token, sign_ins = person.storage.tokens, person.sign_ins
            await place.check(token.access_token, *NAMES[:count])
            if place.has_short_tokens and name == NAMES[-1]:
                await place.wait_for_end(token.access_token)
                assert not (await client.call_tool("list_pets", {})).is_error
                renewed = person.storage.tokens.refresh_token or ""
        assert not result.is_error
        if renewed:
            assert (person.sign_ins, person.storage.tokens.access_token == token.access_token) == (sign_ins, False)
            assert person.storage.client is not None
            await place.check_reuse(person.storage.client, token.refresh_token or "", renewed)


async def test_opaque_tokens_of_a_certified_provider_are_introspected_until_they_are_revoked(
    servers: TestServers,
) -> None:
    """RFC 7662: a client signs in and calls with an opaque token, which is refused after its revocation (TEN-2)."""
    with servers.database() as database:
        async with (
            recording_upstream() as upstream,
            running_gateway(database.app_url, servers.empty_redis(), egress_allow=[upstream.authority]) as gateway,
            running_provider([f"{gateway.url}{CALLBACK}"], token_format="opaque") as provider,
        ):
            await gateway.create_tenant("acme")
            await gateway.import_document("acme", pets(upstream.url))
            await gateway.admin.put("/tenants/acme/egress", json={"allow": [provider.authority]})
            client = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "cache_s": 1}
            body = {"name": "corp", "url": provider.url, "rules": [{"scope": "tools"}], "introspection": client}
            made = await gateway.admin.post("/tenants/acme/issuers", json=body)
            assert made.status_code == 201, made.text
            place, person = Place(gateway, upstream, None, None), Person("ada")
            flow = person.provider(place.url)
            async with (
                httpx2.AsyncClient(auth=flow, timeout=30, verify=NO_TLS, trust_env=False) as http,
                Client(streamable_http_client(place.url, http_client=http), mode="2026-07-28") as connected,
            ):
                assert not (await connected.call_tool("list_pets", {})).is_error
            assert person.storage.tokens is not None
            assert person.storage.client is not None
            token = person.storage.tokens.access_token
            refresh = person.storage.tokens.refresh_token
            await place.check(token, "ada")
            served = (await gateway.rpc("acme", token, "tools/list")).status_code
            given = {"client_id": person.storage.client.client_id or "", "token": token}
            if person.storage.client.client_secret:
                given["client_secret"] = person.storage.client.client_secret
            async with httpx2.AsyncClient(verify=NO_TLS, trust_env=False) as http:
                (await http.post(f"{provider.url}/token/revocation", data=given)).raise_for_status()
            with anyio.fail_after(10):
                while (  # noqa: ASYNC110  # the answer of the provider counts for a second
                    await gateway.rpc("acme", token, "tools/list")
                ).status_code != 401:
                    await anyio.sleep(0.1)
            confused = None if refresh is None else (await gateway.rpc("acme", refresh, "tools/list")).status_code

    assert (token.count("."), served) == (0, 200)
    assert confused in {None, 401}


async def test_a_bound_token_of_a_certified_provider_is_used_with_proofs(servers: TestServers) -> None:
    """RFC 9449: the provider binds the token to the client's key; only with its proofs the token counts (TEN-2)."""
    with servers.database() as database:
        async with (
            recording_upstream() as upstream,
            running_gateway(database.app_url, servers.empty_redis(), egress_allow=[upstream.authority]) as gateway,
            running_provider() as provider,
            httpx2.AsyncClient(verify=NO_TLS, trust_env=False, timeout=30) as http,
        ):
            await gateway.create_tenant("acme")
            await gateway.admin.put("/tenants/acme/egress", json={"allow": [provider.authority]})
            body = {"name": "corp", "url": provider.url, "rules": [{"scope": "tools"}]}
            made = await gateway.admin.post("/tenants/acme/issuers", json=body)
            assert made.status_code == 201, made.text
            url, key = f"{gateway.url}/t/acme/mcp", ProofKey()
            client = {"redirect_uris": [BACK], "token_endpoint_auth_method": "none", "dpop_bound_access_tokens": True}
            registered = (await http.post(f"{provider.url}/reg", json=client)).raise_for_status().json()
            wanted = {
                "client_id": registered["client_id"],
                "response_type": "code",
                "redirect_uri": BACK,
                "scope": "tools",
                "resource": url,
                "code_challenge": challenge_of("v" * 43),
                "code_challenge_method": "S256",
            }
            async with Visitor("ada", until=BACK) as ada:
                came_back = await ada.go(f"{provider.url}/auth?{urlencode(wanted)}")
            given = {
                "grant_type": "authorization_code",
                "code": parse_qs(urlsplit(came_back).query)["code"][0],
                "code_verifier": "v" * 43,
                "client_id": registered["client_id"],
                "redirect_uri": BACK,
                "resource": url,
            }
            place = f"{provider.url}/token"
            issued = await http.post(place, data=given, headers={"dpop": key.prove(place, None)})
            token = issued.raise_for_status().json()["access_token"]
            own, stolen = key.prove(url, token), ProofKey().prove(url, token)
            headers = [("DPoP", own), ("DPoP", own), ("DPoP", stolen), ("Bearer", own)]
            answers = [
                await gateway.rpc("acme", "", "tools/list", authorization=f"{scheme} {token}", dpop=proof)
                for scheme, proof in headers
            ]

    assert issued.json()["token_type"] == "DPoP"
    assert [answer.status_code for answer in answers] == [200, 401, 401, 401], answers[0].text


@pytest.mark.parametrize(("place", "mode"), _cases("2026-07-28"), indirect=["place"])
async def test_the_sdk_for_typescript_signs_in_with_nothing_but_the_url(place: Place, mode: Mode) -> None:
    """MCP: the same with the other official SDK (TEN-2, IDN-2)."""
    person = place.person("ada")
    async with _typescript(place, mode) as client:
        seen = await client.sign_in(person)
        await place.check(seen["token"], "ada")
        if place.has_short_tokens:
            await place.wait_for_end(seen["token"])
            await client.speak("again")
            with anyio.fail_after(60):
                again = json.loads(await client.lines.receive())
            assert (again["failed"], again["token"] == seen["token"]) == (False, False)
            await place.check(again["token"], "ada", "ada")

    assert seen["failed"] is False
