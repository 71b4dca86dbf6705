"""Stored credentials in parameters that the document does not declare, tokens for one API, and limits of time."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from gateway.cli.failures import Failure
from gateway.cli.input.import_request import import_fields
from gateway.cli.input.selections import SelectionOptions
from gateway.domain.http.requests import UpstreamRequest
from gateway.errors import UpstreamTimeout
from gateway.upstream.client import UpstreamClient
from gateway.upstream.deadlines import Timeouts
from tests.behaviour.openapi.conftest import SLUG, OpenAPIBench
from tests.support.upstream import recording_upstream

ITEM = {"name": "account", "in": "path", "required": True, "schema": {"type": "string"}}
BEARER: dict[str, Any] = {
    "components": {"securitySchemes": {"b": {"type": "http", "scheme": "bearer"}}},
    "security": [{"b": []}],
}
TEXT: dict[str, Any] = {"description": "d", "inputSchema": {"type": "object", "properties": {}}}
NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}


def document(url: str, **more: object) -> dict[str, Any]:
    """Three operations; the document declares a path parameter, a query parameter and a header, but no scheme."""
    declared = [
        {"name": "key", "in": "query", "required": True, "schema": {"type": "string"}},
        {"name": "x-api-version", "in": "header", "required": True, "schema": {"type": "string"}},
        {"name": "q", "in": "query", "schema": {"type": "string"}},
    ]
    return {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "servers": [{"url": url}],
        "paths": {
            "/accounts/{account}/things/{name}": {
                "get": {"operationId": "things", "parameters": [ITEM, NAME, *declared], "responses": {}}
            },
            "/plain": {
                "get": {"operationId": "plain", "responses": {}},
                "post": {"operationId": "create", "responses": {}},
            },
        },
        **more,
    }


async def put(bench: OpenAPIBench, content: Mapping[str, Any], **more: object) -> Any:
    """The response to an import as the tenant's only source."""
    body = {"document": content, "base_url": bench.upstream.url, **more}
    return await bench.gateway.admin.put(f"/tenants/{SLUG}/sources/api", json=body)


async def test_credentials_fill_parameters_of_every_document(bench: OpenAPIBench) -> None:
    """Ours: a document without schemes, such as GitHub's, is called with stored credentials (OAS-2)."""
    filled = [
        {"location": "header", "name": "Authorization", "credential": "token"},
        {"location": "header", "name": "X-Api-Version", "credential": "version"},
        {"location": "query", "name": "key", "credential": "key"},
        {"location": "cookie", "name": "session", "credential": "token"},
        {"location": "path", "name": "account", "credential": "account"},
    ]
    credentials = {"token": "Bearer-abc-1", "version": "2026-01-01", "key": "k e&y", "account": "acme/unit"}
    created = await put(bench, document(bench.upstream.url), parameters=filled, credentials=credentials)
    assert created.status_code == 201, created.text
    assert created.json()["parameters"] == filled

    tools = await bench.tools()
    assert set(tools["things"]["inputSchema"]["properties"]) == {"name", "q"}
    assert (await bench.call("things", {"name": "a", "q": "b"})).get("isError") is not True
    assert (await bench.call("plain", {})).get("isError") is not True
    (_, thing), (_, plain) = bench.seen()

    assert thing.target == "/accounts/acme%2Funit/things/a?q=b&key=k%20e%26y"
    assert plain.target == "/plain?key=k%20e%26y"
    for seen in (thing, plain):
        assert seen.header("authorization") == "Bearer-abc-1"
        assert seen.header("x-api-version") == "2026-01-01"
        assert seen.header("cookie") == "session=Bearer-abc-1"

    refused = await bench.call("things", {"name": "{account}"})
    assert refused["isError"] is True  # an argument never moves the secret to another place
    assert bench.seen() == []

    changed = await bench.gateway.admin.patch(f"/tenants/{SLUG}/sources/api", json={"credentials": {}})
    assert changed.status_code == 200, changed.text
    missing = await bench.call("plain", {})
    assert "needs a credential that the source does not have: 'token'" in json.dumps(missing)


async def test_a_parameter_replaces_a_scheme_and_unknown_credentials_are_refused(bench: OpenAPIBench) -> None:
    """Ours: a credential that nothing sends is refused with the remedy, as are headers of the connection (OAS-2)."""
    content = document(bench.upstream.url, **BEARER)
    refused = await put(bench, content, credentials={"token": "x"})
    assert refused.status_code == 400
    assert "in `parameters`" in refused.text
    for name in ("Content-Length", "Host", "X-Forwarded-For", "Content-Type", "a b"):
        one = {"location": "header", "name": name, "credential": "token"}
        refused = await put(bench, content, parameters=[one], credentials={"token": "x"})
        assert refused.status_code == 400, name

    one = {"location": "header", "name": "authorization", "credential": "token"}
    assert (await put(bench, content, parameters=[one], credentials={"token": "Token abcdef"})).status_code == 201
    await bench.call("plain", {})
    assert bench.seen()[0][1].header("authorization") == "Token abcdef"


@pytest.mark.parametrize("value", ["secret-abc", "Bearer secret-abc", "bearer  secret-abc"])
async def test_a_bearer_token_may_be_stored_with_its_prefix(bench: OpenAPIBench, value: str) -> None:
    """Ours: users paste the whole header value; an echo of the token alone is redacted too (OAS-2)."""
    content = document(bench.upstream.url, **BEARER)
    assert (await put(bench, content, credentials={"b": value})).status_code == 201
    bench.upstream.body = b'{"echo":"secret-abc"}'
    result = await bench.call("plain", {})

    assert bench.seen()[0][1].header("authorization") == "Bearer secret-abc"
    assert "secret-abc" not in json.dumps(result)


async def test_client_credentials_have_further_parameters(bench: OpenAPIBench) -> None:
    """Ours: an API at Auth0 needs `audience` in the token request (OAS-2)."""
    flow = {"clientCredentials": {"tokenUrl": f"{bench.upstream.url}/token", "scopes": {"read": ""}}}
    oauth = {
        "components": {"securitySchemes": {"o": {"type": "oauth2", "flows": flow}}},
        "security": [{"o": ["read"]}],
    }
    client: dict[str, object] = {"username": "me", "password": "secret-1", "audience": "https://api.example"}
    content = document(bench.upstream.url, **oauth)
    for name in ("grant_type", "scope", "client_secret"):
        refused = await put(bench, content, credentials={"o": client | {"parameters": {name: "x"}}})
        assert refused.status_code == 400, name
    more = {"resource": "https://r.example", "parameters": {"organization": "org_1"}}
    assert (await put(bench, content, credentials={"o": client | more})).status_code == 201
    bench.upstream.body = b'{"access_token":"tok-12345","token_type":"Bearer","expires_in":3600}'
    await bench.call("plain", {})
    (_, token), (_, call) = bench.seen()

    assert token.body == (
        b"grant_type=client_credentials&scope=read&audience=https%3A%2F%2Fapi.example"
        b"&resource=https%3A%2F%2Fr.example&organization=org_1"
    )
    assert call.header("authorization") == "Bearer tok-12345"


async def test_a_source_has_a_time_limit_of_its_own(bench: OpenAPIBench) -> None:
    """Ours: the error of an unsafe call that timed out names the possible effect (CAL-1)."""
    refused = await put(bench, document(bench.upstream.url), timeout_s=3000)
    assert refused.status_code == 400
    assert "GATEWAY_UPSTREAM_TIMEOUT_MAX_S" in refused.text
    created = await put(bench, document(bench.upstream.url), timeout_s=0.3)
    assert created.json()["timeout_s"] == 0.3
    bench.upstream.gate = asyncio.Event()
    read, written = await bench.call("plain", {}), await bench.call("create", {})

    assert read["isError"] is written["isError"] is True
    assert "did not respond in time" in json.dumps(read)
    assert "carried out" not in json.dumps(read)
    assert "The call may have been carried out" in json.dumps(written)


async def test_the_operator_bounds_every_time_limit() -> None:
    """Ours: a stored time limit above the operator's maximum, lowered since, is cut (TEN-2)."""
    async with recording_upstream() as server:
        server.gate = asyncio.Event()
        timeouts = Timeouts(max_s=0.2)
        async with UpstreamClient(egress_allow=[server.authority], timeouts=timeouts) as upstream:
            with pytest.raises(UpstreamTimeout), anyio.fail_after(20):
                await upstream.send(UpstreamRequest(method="GET", url=f"{server.url}/", timeout_s=60.0))
        server.gate.set()


async def test_a_declared_request_may_take_longer_than_the_usual_limits(bench: OpenAPIBench) -> None:
    """Ours: `timeout_s` of an `http` handler is sent along; an unsafe call names a timeout as unclear (CAL-1)."""
    for name, method in (("look", "GET"), ("write", "POST")):
        handler = {"kind": "http", "method": method, "url": f"{bench.upstream.url}/x", "timeout_s": 0.3}
        body: dict[str, Any] = {"definition": {"name": name, **TEXT}, "handler": handler, "safety": "safe"}
        created = await bench.gateway.admin.post(f"/tenants/{SLUG}/tools", json=body)
        assert created.status_code == 201, created.text
    bench.upstream.gate = asyncio.Event()
    looked, written = await bench.call("look", {}), await bench.call("write", {})

    assert "carried out" not in json.dumps(looked)
    assert "The call may have been carried out" in json.dumps(written)
    handler = {"kind": "http", "method": "GET", "url": f"{bench.upstream.url}/x", "timeout_s": 240}
    body = {"definition": {"name": "slow", **TEXT}, "handler": handler}
    assert (await bench.gateway.admin.post(f"/tenants/{SLUG}/tools", json=body)).status_code == 201


def test_the_command_line_names_filled_parameters() -> None:
    """Ours: `source add --parameter header:X-Key=key --credential key=…` is one request (CLI-1)."""
    options: Any = {
        **dict.fromkeys(SelectionOptions.__annotations__, ()),
        "credentials": ("key=secret",),
        "logins": (),
        "parameters": ("header:X-Key=key", "query:a:b=key"),
        "member_timeout": 120,
    }
    fields = import_fields(options)

    assert fields["parameters"] == [
        {"location": "header", "name": "X-Key", "credential": "key"},
        {"location": "query", "name": "a:b", "credential": "key"},
    ]
    assert fields["timeout_s"] == 120
    for wrong in ("header:X-Key", "X-Key=key", "header:=key"):
        with pytest.raises(Failure, match="LOCATION:NAME=CREDENTIAL"):
            import_fields(options | {"parameters": (wrong,)})
