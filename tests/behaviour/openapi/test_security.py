"""Credentials through a real gateway: all of a requirement, one of several, tokens fetched, nothing given away."""

import json
from typing import Any

from tests.behaviour.openapi.conftest import OpenAPIBench


def document(bench: OpenAPIBench) -> dict[str, Any]:
    """One operation for each way in."""
    token_url = f"{bench.upstreams[1].url}/token"
    schemes: dict[str, Any] = {
        "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "query": {"type": "apiKey", "in": "query", "name": "key"},
        "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
        "basic": {"type": "http", "scheme": "basic"},
        "token": {"type": "http", "scheme": "Token"},
        "unstored": {"type": "apiKey", "in": "header", "name": "X-Other"},
        "oauth": {
            "type": "oauth2",
            "flows": {"clientCredentials": {"tokenUrl": token_url, "scopes": {"read": "", "write": ""}}},
        },
    }
    ways: dict[str, list[dict[str, list[str]]]] = {
        "both": [{"header": [], "query": [], "cookie": []}],
        "either": [{"unstored": []}, {"basic": []}],
        "named": [{"token": []}],
        "optional": [{"unstored": []}, {}],
        "missing": [{"unstored": []}],
        "fetched": [{"oauth": ["read"]}],
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Ways in", "version": "1"},
        "servers": [{"url": bench.upstream.url}],
        "components": {"securitySchemes": schemes},
        "paths": {
            f"/{name}": {"get": {"operationId": name, "security": security, "responses": {"200": {"description": ""}}}}
            for name, security in ways.items()
        },
    }


STORED = {
    "header": "header-secret",
    "query": "query secret",
    "cookie": "cookie-secret",
    "basic": ["user", "basic-secret"],
    "token": "token-secret",
    "oauth": ["client", "client-secret"],
}


async def test_every_security_scheme_is_applied_by_the_document(bench: OpenAPIBench) -> None:
    """OpenAPI: all schemes of a requirement, the first requirement for which all is stored (OAS-2)."""
    await bench.import_document(document(bench), STORED)
    for name in ("both", "either", "named", "optional"):
        assert (await bench.call(name, {}))["isError"] is False
    missing = await bench.call("missing", {})
    both, either, named, optional = [seen for _, seen in bench.seen()]

    assert both.target == "/both?key=query%20secret"
    assert (both.header("x-key"), both.header("cookie")) == ("header-secret", "sid=cookie-secret")
    assert either.header("authorization") == "Basic dXNlcjpiYXNpYy1zZWNyZXQ="
    assert named.header("authorization") == "Token token-secret"
    assert optional.header("x-other") is None
    assert missing["isError"] is True
    assert "unstored" in missing["content"][0]["text"]


async def test_a_token_is_fetched_once_and_again_when_it_is_refused(bench: OpenAPIBench) -> None:
    """RFC 6749: a client's own credentials buy a token, which is used until the upstream refuses it (OAS-2)."""
    api, authority = bench.upstreams
    await bench.import_document(document(bench), STORED)
    authority.body = json.dumps({"access_token": "tok-1234567", "token_type": "bearer", "expires_in": 3600}).encode()
    for _ in range(2):
        assert (await bench.call("fetched", {}))["isError"] is False
    seen = bench.seen()

    assert [item.header("authorization") for number, item in seen if number == 1] == ["Bearer tok-1234567"] * 2
    [asked] = [item for number, item in seen if number == 2]
    assert (asked.method, asked.target, asked.body) == ("POST", "/token", b"grant_type=client_credentials&scope=read")

    api.status, api.body = 401, b"bad token tok-1234567 of client-secret"
    refused = await bench.call("fetched", {})
    numbers = [number for number, _ in bench.seen()]

    assert sorted(numbers) == [1, 1, 2]
    assert refused["isError"] is True
    assert "HTTP 401" in refused["content"][0]["text"]
    assert "tok-1234567" not in json.dumps(refused)
    assert "client-secret" not in json.dumps(refused)


async def test_an_echoed_credential_is_blanked_out(bench: OpenAPIBench) -> None:
    """Ours: a credential that an upstream repeats does not reach the client, in any form (TEN-4)."""
    await bench.import_document(document(bench), STORED)
    bench.upstream.status = 400
    bench.upstream.body = json.dumps({"raw": "basic-secret", "pair": "dXNlcjpiYXNpYy1zZWNyZXQ=", "ok": "kept"}).encode()
    text = json.dumps(await bench.call("either", {}))

    assert "kept" in text
    assert "basic-secret" not in text
    assert "dXNlcjpi" not in text
