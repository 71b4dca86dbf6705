"""Tenants whose credentials name the caller: an issuer with a token endpoint each, and one API for all."""

import base64
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import jwt
import orjson

from tests.support.gateway import RunningGateway, running_gateway
from tests.support.issuer import LocalIssuer, add_issuer, new_issuer
from tests.support.servers import TestDatabase
from tests.support.upstream import RecordingUpstream, Seen, recording_upstream

PUBLIC = "https://gateway.example"
API = "https://orders.internal"
TENANTS, PEOPLE = ("acme", "globex"), ("ada", "bob")
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_SCHEMA = {"type": "object", "properties": {"as": {"type": "string"}}, "required": ["as"]}


@dataclass(slots=True)
class TokenEndpoint:
    """The token endpoint of an issuer (RFC 8693): it exchanges tokens that the issuer has signed."""

    issuer: LocalIssuer
    name: str
    status: str = ""
    """An error code to answer with."""
    returned: str = ""
    """A token that is returned in every exchange."""
    exchanged: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])

    def respond(self, seen: Seen) -> bytes:
        """Return metadata, keys and tokens of a sign-in, or the token for which a token is exchanged."""
        form = {name: values[0] for name, values in parse_qs(seen.body.decode()).items()}
        if form.get("grant_type") != EXCHANGE:
            return self.issuer.upstream.body
        assert base64.b64decode((seen.header("authorization") or "").removeprefix("Basic ")) == b"gw:s3cret-client"
        key = self.issuer.keys["rsa"].public_key()
        claims = jwt.decode(form["subject_token"], key, algorithms=["RS256"], options={"verify_aud": False})
        self.exchanged.append({**form, "claims": claims})
        if self.status:
            return orjson.dumps({"error": self.status})
        value = f"{self.name}.{claims['sub']}.{form.get('audience', '')}.{len(self.exchanged)}"
        return orjson.dumps({"access_token": self.returned or value, "token_type": "Bearer", "expires_in": 300})


@dataclass(slots=True)
class Delegating:
    """Two tenants with an issuer each, and one API that both call."""

    replicas: Sequence[RunningGateway]
    api: RecordingUpstream
    issuers: dict[str, LocalIssuer]
    endpoints: dict[str, TokenEndpoint]

    @property
    def gateway(self) -> RunningGateway:
        """The first replica."""
        return self.replicas[0]

    def token(self, tenant: str, person: str, **claims: Any) -> str:
        """An access token of a person."""
        return self.issuers[tenant].token(f"{PUBLIC}/t/{tenant}/mcp", sub=person, **claims)

    async def call(
        self, tenant: str, credential: str, tool: str, marked: str = "x", *, replica: int = 0
    ) -> dict[str, Any]:
        """The result of a call."""
        params = {"name": tool, "arguments": {"as": marked}}
        answer = (await self.replicas[replica].rpc(tenant, credential, "tools/call", params)).json()
        result: dict[str, Any] = answer["result"]
        return result

    async def declare(self, tenant: str, name: str, credential: Mapping[str, Any]) -> None:
        """A credential, a declared tool that names it, and a source whose scheme refers to it."""
        base = f"/tenants/{tenant}"
        body = {"name": name, "place": "bearer", "origins": [self.api.url], **credential}
        made = await self.gateway.admin.post(f"{base}/credentials", json=body)
        assert made.status_code == 201, made.text
        url = f"{self.api.url}/{name}/{{{{ as }}}}"
        handler = {"kind": "http", "method": "GET", "url": url, "credential": name}
        definition = {"name": f"tool_{name}", "description": "-", "inputSchema": _SCHEMA}
        tool = {"definition": definition, "handler": handler}
        made = await self.gateway.admin.post(f"{base}/tools", json=tool)
        assert made.status_code == 201, made.text
        document = document_of(self.api.url, name)
        more = {"credentials": {"oauth": {"credential": name}}}
        await self.gateway.import_document(tenant, document, name=f"source_{name}", **more)


def document_of(url: str, name: str) -> dict[str, Any]:
    """A document with one operation, whose scheme is to refer to a credential."""
    parameter = {"name": "as", "in": "path", "required": True, "schema": {"type": "string"}}
    flows = {"authorizationCode": {"authorizationUrl": "https://x.example/a", "tokenUrl": "https://x.example/t"}}
    operation = {"operationId": f"op_{name}", "parameters": [parameter], "responses": {"200": {"description": "ok"}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": name, "version": "1"},
        "servers": [{"url": url}],
        "paths": {f"/{name}/{{as}}": {"get": operation}},
        "components": {"securitySchemes": {"oauth": {"type": "oauth2", "flows": {**flows}}}},
        "security": [{"oauth": []}],
    }


@asynccontextmanager
async def running_delegation(
    database: TestDatabase, redis_url: str, *, replicas: int = 1, tenants: Sequence[str] = TENANTS, **issuer: Any
) -> AsyncGenerator[Delegating]:
    """The tenants at replicas of their own."""
    async with AsyncExitStack() as stack:
        upstreams = [await stack.enter_async_context(recording_upstream()) for _ in range(1 + len(tenants))]
        allowed = [upstream.authority for upstream in upstreams]
        gateways = [
            await stack.enter_async_context(
                running_gateway(database.app_url, redis_url, egress_allow=allowed, public_url=PUBLIC)
            )
            for _ in range(replicas)
        ]
        yield await create_delegation(gateways, upstreams, tenants=tenants, **issuer)


async def create_delegation(
    replicas: Sequence[RunningGateway], upstreams: Sequence[RecordingUpstream], *, tenants: Sequence[str], **issuer: Any
) -> Delegating:
    """The tenants, with a shared credential, an exchanging one and an asserting one each; an upstream each, after the
    one that is the API of all.
    """
    api, *servers = upstreams
    found = Delegating(replicas, api, {}, {})
    for tenant, server in zip(tenants, servers, strict=False):
        made = new_issuer(server)
        made.publish(token_endpoint=f"{server.url}/token", authorization_endpoint=f"{server.url}/authorize")
        found.issuers[tenant] = made
        found.endpoints[tenant] = TokenEndpoint(made, tenant)
        server.respond = found.endpoints[tenant].respond
        await found.gateway.create_tenant(tenant)
        await add_issuer(found.gateway, tenant, made, **issuer)
        await found.declare(tenant, "shared", {"value": f"secret-of-{tenant}"})
        client = {"issuer": "corp", "client_id": "gw", "value": "s3cret-client"}
        await found.declare(tenant, "exchange", {"kind": "exchange", "audience": API, **client})
        await found.declare(tenant, "assertion", {"kind": "assertion", "audience": API})
    return found
