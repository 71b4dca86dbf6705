"""Access tokens of an issuer in place of keys: who is admitted where, and when that ends."""

import asyncio
from typing import Any, Literal

import anyio
import pytest

from gateway.domain.identifiers import mint
from gateway.upstream.auth import key_sets
from tests.support.documents import pets
from tests.support.gateway import ACCEPT, RunningGateway, running_gateway
from tests.support.issuer import LocalIssuer, LocalProvider, add_issuer, new_issuer, new_keys
from tests.support.replicas import until
from tests.support.servers import TestServers
from tests.support.upstream import RecordingUpstream

CALL: dict[str, Any] = {"name": "list_pets", "arguments": {}}


@pytest.fixture
async def issuer(gateway: RunningGateway, upstream: RecordingUpstream) -> LocalIssuer:
    """An issuer, and the tenant `acme` that does not have it yet."""
    await gateway.create_tenant("acme")
    await gateway.import_document("acme", pets(upstream.url))
    return new_issuer(upstream)


def _audience(gateway: RunningGateway, slug: str = "acme") -> str:
    return f"{gateway.url}/t/{slug}/mcp"


async def _status(gateway: RunningGateway, credential: str) -> int:
    return (await gateway.rpc("acme", credential, "tools/list")).status_code


async def _open_session(gateway: RunningGateway, token: str) -> str:
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
    headers = {"accept": ACCEPT, "authorization": f"Bearer {token}"}
    opened = await gateway.http.post("/t/acme/mcp", json=hello, headers=headers)
    session: str = opened.headers["mcp-session-id"]
    return session


async def _ping(gateway: RunningGateway, token: str, session: str) -> int:
    headers = {"accept": ACCEPT, "authorization": f"Bearer {token}", "mcp-session-id": session}
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    return (await gateway.http.post("/t/acme/mcp", json=ping, headers=headers)).status_code


async def test_a_person_calls_a_tool_with_an_access_token(
    gateway: RunningGateway, issuer: LocalIssuer, upstream: RecordingUpstream
) -> None:
    """Ours: the call is the person's in the trail, and the token goes nowhere (TEN-2, TEN-4)."""
    await add_issuer(gateway, "acme", issuer)
    token = issuer.token(_audience(gateway))

    answers = [await gateway.rpc("acme", token, "tools/call", CALL) for _ in range(2)]
    async with gateway.client("acme", token) as client:
        listed = await client.list_tools()

    assert all("result" in answer.json() for answer in answers), answers[0].text
    assert {tool.name for tool in listed.tools} >= {"list_pets"}
    entries = (await gateway.admin.get("/tenants/acme/audit?tool=list_pets")).json()["items"]
    assert {entry["principal"] for entry in entries} == {"user:corp:ada"}
    [person] = (await gateway.admin.get("/tenants/acme/people")).json()["items"]
    assert (person["subject"], person["denied_at"]) == ("corp:ada", None)
    assert (await gateway.admin.get("/tenants/acme/keys")).json()["items"] == []
    assert not [seen for seen in upstream.seen if token in repr(seen)]


async def test_a_client_finds_the_issuer_with_nothing_but_the_url(gateway: RunningGateway, issuer: LocalIssuer) -> None:
    """Ours: the challenge leads to the metadata of that URL, and to none where there is none (RFC 9728, TEN-2)."""
    await add_issuer(gateway, "acme", issuer, rules=[{"scope": "pets"}])
    challenges: dict[str, str] = {}
    for slug in ("acme", "missing"):
        answer = await gateway.http.post(f"/t/{slug}/mcp", json={})
        wrong = await gateway.rpc(slug, "wrong", "tools/list")
        assert (answer.status_code, wrong.status_code) == (401, 401)
        challenges[slug] = answer.headers["www-authenticate"]
        with_error = "Bearer, ".join(("", challenges[slug].removeprefix("Bearer").strip()))
        notified = wrong.headers["www-authenticate"]
        assert notified == with_error.replace("Bearer", 'Bearer error="invalid_token"').removesuffix(", ")

    place = challenges["acme"].removeprefix('Bearer resource_metadata="').removesuffix('"')
    found = await gateway.http.get(place)

    assert place == f"{gateway.url}/.well-known/oauth-protected-resource/t/acme/mcp"
    assert challenges["missing"] == "Bearer"
    assert found.json() == {
        "resource": _audience(gateway),
        "authorization_servers": [issuer.url],
        "bearer_methods_supported": ["header"],
        "dpop_signing_alg_values_supported": ["ES256", "ES384", "ES512", "EdDSA", "RS256", "PS256"],
        "scopes_supported": ["pets"],
    }
    assert (await gateway.http.get(f"{place}/")).json() == found.json()
    slashed = await gateway.http.post("/t/acme/mcp/", json={})
    assert slashed.headers["www-authenticate"] == challenges["acme"]
    profile = await gateway.http.get("/.well-known/oauth-protected-resource/t/acme/default/mcp")
    assert profile.json()["resource"] == f"{gateway.url}/t/acme/default/mcp"
    admin = "/admin/v1/tenants"
    for path in ("/t/missing/mcp", "/t/acme/hooks", "/t/acme", "", "/t/acme/messages", "/admin/v1", f"{admin}/missing"):
        assert (await gateway.http.get(f"/.well-known/oauth-protected-resource{path}")).status_code == 404, path


async def test_a_token_without_the_scope_gets_its_name(gateway: RunningGateway, issuer: LocalIssuer) -> None:
    """Ours: `insufficient_scope` names the scopes that would do, so that a client asks for them (RFC 6750, TEN-2)."""
    await add_issuer(gateway, "acme", issuer, rules=[{"scope": "pets"}, {"group": "keepers"}])

    claims: list[dict[str, Any]] = [{"scope": "cats pets"}, {"scp": ["pets"]}, {"groups": ["cleaners", "keepers"]}]

    refused = await gateway.rpc("acme", issuer.token(_audience(gateway), scope="cats"), "tools/list")
    admitted = [await gateway.rpc("acme", issuer.token(_audience(gateway), **more), "tools/list") for more in claims]

    assert refused.status_code == 403
    assert refused.headers["www-authenticate"] == (
        'Bearer error="insufficient_scope", scope="pets", '
        f'resource_metadata="{gateway.url}/.well-known/oauth-protected-resource/t/acme/mcp"'
    )
    assert refused.json()["error"]["data"]["code"] == "auth.scope_missing"
    assert [answer.status_code for answer in admitted] == [200, 200, 200]


async def test_a_rule_admits_to_the_profiles_that_it_names(gateway: RunningGateway, issuer: LocalIssuer) -> None:
    """Ours: a token is for one URL, and a rule may leave out profiles (TEN-2)."""
    answer = await gateway.admin.put("/tenants/acme/profiles/cats", json={"description": "Cats"})
    assert answer.is_success, answer.text
    rules = [{"group": "all"}, {"profiles": ["cats"]}, {"scope": "of-cats", "profiles": ["cats"]}, {"scope": "tools"}]
    await add_issuer(gateway, "acme", issuer, rules=rules)
    paths = {"/t/acme/mcp": ["tools"], "/t/acme/cats/mcp": ["of-cats", "tools"]}
    for path, scopes in paths.items():
        metadata = (await gateway.http.get(f"/.well-known/oauth-protected-resource{path}")).json()
        assert metadata["scopes_supported"] == scopes
    cats = f"{gateway.url}/t/acme/cats/mcp"
    statuses: dict[str, list[int]] = {}
    for name, token in {
        "default": issuer.token(_audience(gateway)),
        "cats": issuer.token(cats),
        "member": issuer.token(_audience(gateway), groups=["all"]),
        "both": issuer.token([cats, _audience(gateway)], groups=["all"]),
    }.items():
        statuses[name] = [(await gateway.rpc(slug, token, "tools/list")).status_code for slug in ("acme", "acme/cats")]

    assert statuses == {"default": [403, 401], "cats": [401, 200], "member": [200, 401], "both": [200, 200]}


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_scope_is_limited_to_safe_tools_by_its_profile(
    gateway: RunningGateway, issuer: LocalIssuer, era: Literal["legacy", "2026-07-28"]
) -> None:
    """Ours: `read` admits to safe tools and nowhere else, in both eras; a key has no scope of an issuer (TEN-2)."""
    safe = {"include": [{"safety": ["safe"]}]}
    (await gateway.admin.put("/tenants/acme/profiles/reading", json=safe)).raise_for_status()
    await add_issuer(gateway, "acme", issuer, rules=[{"scope": "read", "profiles": ["reading"]}, {"scope": "write"}])
    reading = f"{gateway.url}/t/acme/reading/mcp"
    token = issuer.token([reading, _audience(gateway)], scope="read")
    writer = issuer.token([reading, _audience(gateway)], scope="read write")

    async with gateway.client("acme/reading", token, era) as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
    async with gateway.client("acme", writer, era) as client:
        every = {tool.name for tool in (await client.list_tools()).tools}

    assert (listed & {"list_pets", "create_pet", "delete_pet"}, "create_pet" in every) == ({"list_pets"}, True)
    called = await gateway.rpc("acme/reading", token, "tools/call", {"name": "create_pet", "arguments": {}})
    assert "error" in called.json()
    assert await _status(gateway, token) == 403
    assert (await gateway.rpc("acme/reading", await gateway.create_key("acme"), "tools/list")).status_code == 200


async def test_a_denied_person_is_refused_and_so_are_the_persons_keys(
    gateway: RunningGateway, issuer: LocalIssuer
) -> None:
    """Ours: a denial holds for every token and key of the subject, and can be taken back (TEN-2)."""
    await add_issuer(gateway, "acme", issuer)
    first, second = (issuer.token(_audience(gateway), jti=each) for each in "12")
    key = await gateway.create_key("acme", subject="corp:ada")
    for credential in (first, second, key):
        assert (await gateway.rpc("acme", credential, "tools/list")).status_code == 200
    [person] = (await gateway.admin.get("/tenants/acme/people")).json()["items"]
    path = f"/tenants/acme/people/{person['id']}"

    denied = await gateway.admin.post(f"{path}/deny")
    refused = [await _status(gateway, each) for each in (first, second, key)]
    other = await gateway.rpc("acme", issuer.token(_audience(gateway), sub="bob"), "tools/list")
    late = await gateway.rpc("acme", issuer.token(_audience(gateway), jti="3"), "tools/list")
    await gateway.admin.post(f"{path}/allow")

    assert denied.json()["denied_at"] is not None
    assert [*refused, other.status_code, late.status_code] == [401, 401, 401, 200, 401]
    for credential in (first, key):
        assert await _status(gateway, credential) == 200


@pytest.mark.parametrize("change", [{"enabled": False}, {"rules": [{"subject": "bob"}]}, None])
async def test_a_change_of_the_issuer_holds_for_tokens_in_use(
    gateway: RunningGateway, issuer: LocalIssuer, change: dict[str, object] | None
) -> None:
    """Ours: an issuer that is switched off, has other rules or is gone no longer admits the same token (TEN-2)."""
    await add_issuer(gateway, "acme", issuer)
    token = issuer.token(_audience(gateway))
    assert (await gateway.rpc("acme", token, "tools/list")).status_code == 200

    path = "/tenants/acme/issuers/corp"
    answer = await (gateway.admin.delete(path) if change is None else gateway.admin.patch(path, json=change))

    assert answer.is_success, answer.text
    status = 403 if change is not None and "rules" in change else 401
    assert await _status(gateway, token) == status


async def test_a_session_belongs_to_the_person_that_opened_it(gateway: RunningGateway, issuer: LocalIssuer) -> None:
    """Ours: another person's token does not find it; the same person's next token does (ISO-1)."""
    await add_issuer(gateway, "acme", issuer)
    mine, renewed = (issuer.token(_audience(gateway), jti=each) for each in "12")
    foreign = issuer.token(_audience(gateway), sub="bob")
    session = await _open_session(gateway, mine)

    assert [await _ping(gateway, token, session) for token in (mine, renewed, foreign)] == [200, 200, 404]


async def test_rotated_keys_of_an_issuer_are_found_and_removed_ones_are_refused(
    gateway: RunningGateway, issuer: LocalIssuer, upstream: RecordingUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: an unknown key id fetches the set again, at a bounded rate; a removed key ends in ten minutes (TEN-2).

    Changed bounds take the place of waiting.
    """
    await add_issuer(gateway, "acme", issuer)

    async def status(kid: str) -> int:
        return await _status(gateway, issuer.token(_audience(gateway), kid=kid, jti=mint("key")))

    assert await status("rsa") == 200
    fetched = len(upstream.seen)
    issuer.keys["next"] = new_keys()["rsa"]
    issuer.publish()
    assert {await status("next") for _ in range(5)} == {401}
    assert len(upstream.seen) == fetched

    monkeypatch.setattr(key_sets, "KEYS_RETRY_S", 0.0)
    assert [await status("next"), await status("rsa")] == [200, 200]
    assert len(upstream.seen) == fetched + 1

    used = issuer.token(_audience(gateway))
    assert await _status(gateway, used) == 200
    removed = issuer.keys.pop("rsa")
    issuer.publish()
    fetched = len(upstream.seen)
    monkeypatch.setattr(key_sets, "FRESH_KEYS_S", 0.0)
    assert await status("next") == 200
    issuer.keys["rsa"] = removed
    assert (await status("rsa"), len(upstream.seen) > fetched) == (401, True)

    async def is_refused() -> bool:
        return await _status(gateway, used) == 401

    await until(is_refused, seconds=5)


async def test_changes_of_an_issuer_at_the_same_time_lose_no_url_of_keys(
    gateway: RunningGateway, issuer: LocalIssuer
) -> None:
    """Ours: the URL of the keys that another request stored stays; two changes of it are a conflict (TEN-2)."""
    await add_issuer(gateway, "acme", issuer)
    path, upstream, provider = "/tenants/acme/issuers/corp", issuer.upstream, LocalProvider(issuer)
    provider.publish()
    changes: list[dict[str, Any]] = [
        {"sign_in": provider.client},
        {"enabled": True, "jwks_url": f"{issuer.url}/slow"},
    ]
    statuses: list[int] = []

    async def send(body: dict[str, Any]) -> None:
        statuses.append((await gateway.admin.patch(path, json=body)).status_code)

    for number, slow in enumerate(changes):
        upstream.arrived.clear()
        gate = upstream.gate = asyncio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send, slow)
            with anyio.fail_after(10):
                await upstream.arrived.wait()
            await send({"enabled": False, "jwks_url": f"{issuer.url}/new/{number}"})
            gate.set()
        stored = (await gateway.admin.get(path)).json()
        assert (stored["jwks_url"], stored["enabled"]) == (f"{issuer.url}/new/{number}", False)
    assert statuses == [200, 200, 200, 409]


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"issuer": "https://other.example"}, "another issuer"),
        ({"jwks_uri": None}, "jwks_uri"),
        ({"jwks_uri": "http://10.0.0.1/keys"}, "https"),
        ({"keys": {}}, "not a JWK set"),
    ],
)
async def test_an_issuer_that_cannot_work_is_refused(
    gateway: RunningGateway, issuer: LocalIssuer, document: dict[str, object], reason: str
) -> None:
    """Ours: a typing error is found when the issuer is created, not at the first sign-in (TEN-2)."""
    issuer.publish(**document)
    body: dict[str, Any] = {"name": "corp", "url": issuer.url, "rules": [{}]}

    answer = await gateway.admin.post("/tenants/acme/issuers", json=body)

    assert answer.status_code == 400
    assert reason in answer.json()["detail"]
    assert (await gateway.admin.get("/tenants/acme/issuers")).json()["items"] == []


async def test_a_null_condition_alone_admits_no_one(gateway: RunningGateway) -> None:
    """Ours: a rule for all people has no condition, or all are null as responses show them (TEN-2)."""
    await gateway.create_tenant("acme")
    path, body = "/tenants/acme/issuers", {"name": "corp", "url": "https://login.example", "enabled": False}
    for conditions in ({"group": None}, {"scope": None, "subject": None}):
        refused = await gateway.admin.post(path, json={**body, "rules": [{"subject": "ada"}, conditions]})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, f"/rules/1/{min(conditions)}")
    rules = [{}, {"group": "staff", "scope": None}, {"profiles": ["default"]}]
    made = await gateway.admin.post(path, json={**body, "rules": rules})
    assert made.status_code == 201, made.text
    shown = await gateway.admin.get(f"{path}/corp")
    same = await gateway.admin.put(f"{path}/corp", json=shown.json())
    assert (same.status_code, same.headers["etag"]) == (200, shown.headers["etag"]), same.text


async def test_an_admin_of_a_tenant_names_no_audience(gateway: RunningGateway, issuer: LocalIssuer) -> None:
    """Ours: with one of another tenant, tokens of that tenant's people would be valid here too (ISO-1)."""
    admin = {"authorization": f"Bearer {await gateway.create_key('acme', 'admin', 'mcp')}"}
    less = {"authorization": f"Bearer {await gateway.create_key('acme', 'admin')}"}
    body: dict[str, Any] = {"name": "corp", "url": issuer.url, "rules": [{}]}
    url = f"{gateway.url}/admin/v1/tenants/acme/issuers"

    refused = [
        await gateway.http.post(url, json={**body, "audiences": ["api://globex"]}, headers=admin),
        await gateway.http.post(url, json=body, headers=less),
    ]
    made = await gateway.http.post(url, json=body, headers=admin)
    widened = await gateway.http.patch(f"{url}/corp", json={"audiences": ["api://globex"]}, headers=admin)

    assert [answer.status_code for answer in (*refused, made, widened)] == [403, 403, 201, 403]


async def test_metadata_of_made_up_tenants_counts_as_failures(servers: TestServers) -> None:
    """Ours: looking for tenants by their metadata is slowed down like guessing keys (ISO-6)."""
    with servers.database() as database:
        async with running_gateway(database.app_url, servers.empty_redis(), auth_failure_rate=0.1) as gateway:
            for index in range(5):
                path = f"/.well-known/oauth-protected-resource/t/made-up-{index}/mcp"
                assert (await gateway.http.get(path)).status_code == 404
            refused = await gateway.rpc("acme", "wrong", "tools/list")

    assert refused.status_code == 429
