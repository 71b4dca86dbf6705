"""Credentials that name the caller: which identity arrives at the upstream, and that no other one does."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import parse_qs

import jwt
import orjson
import pytest

from tests.integration.upstream.live.sdk_server import running_sdk_server
from tests.support.delegation import API, PEOPLE, PUBLIC, TENANTS, Delegating, create_delegation, document_of
from tests.support.issuer import OpaqueTokens, add_issuer, new_issuer
from tests.support.primitives import text_resource
from tests.support.replicas import until
from tests.support.servers import TestServers
from tests.support.stand import Stand, running_stand
from tests.support.upstream import Seen, recording_upstream


@pytest.fixture(scope="module")
async def common_stand(servers: TestServers) -> AsyncGenerator[Stand]:
    """The replica of these tests, with a public URL, the API and an upstream for each tenant."""
    async with running_stand(servers, upstreams=1 + len(TENANTS), public_url=PUBLIC) as stand:
        yield stand


@pytest.fixture
async def world(stand: Stand) -> Delegating:
    """One of the tenants."""
    return await create_delegation([stand.gateway], stand.upstreams, tenants=TENANTS[:1])


@pytest.fixture
async def both(stand: Stand) -> Delegating:
    """Both tenants."""
    return await create_delegation([stand.gateway], stand.upstreams, tenants=TENANTS)


async def test_a_caller_without_a_token_of_the_issuer_gets_a_clear_result(world: Delegating) -> None:
    """Ours: a key is no person to exchange for; an assertion names its subject all the same (TEN-4)."""
    key = await world.gateway.create_key("acme", "mcp", subject="corp:ada")

    exchanged = await world.call("acme", key, "tool_exchange")
    asserted = await world.call("acme", key, "op_assertion")

    assert exchanged["isError"] is True
    assert "'exchange' acts for the person who calls" in str(exchanged["content"])
    assert not asserted.get("isError")
    [seen] = world.api.seen
    value = (seen.header("authorization") or "").removeprefix("Bearer ")
    claims = jwt.decode(value, options={"verify_signature": False})
    # the subject of a key is its creator's choice, so an API can distinguish a key from a person
    assert (claims["sub"], claims["principal"][:8]) == ("corp:ada", "key:key_")


async def test_an_exchange_is_made_with_the_token_of_the_call_and_again_after_a_refusal(world: Delegating) -> None:
    """Ours: a newer token of the same person is exchanged again; so is one that the upstream refuses (TEN-4)."""
    old, new = world.token("acme", "ada"), world.token("acme", "ada", jti="new")
    endpoint = world.endpoints["acme"]
    for token in (old, new, old):
        assert not (await world.call("acme", token, "tool_exchange")).get("isError")
    assert [each["subject_token"] for each in endpoint.exchanged] == [old, new]

    world.api.status = 401
    await world.call("acme", old, "tool_exchange")
    world.api.status = 200
    await world.call("acme", old, "tool_exchange")
    assert [each["subject_token"] for each in endpoint.exchanged] == [old, new, old]

    endpoint.status = "invalid_target"
    world.issuers["acme"].upstream.status = 400
    refused = await world.call("acme", world.token("acme", "bob"), "op_exchange")
    assert "'exchange' responded with status 400 (invalid_target)" in str(refused["content"])


async def test_a_session_exchanges_the_token_of_each_request(world: Delegating) -> None:
    """Ours: a session that goes on with a newer token does not use the one that opened it (TEN-4)."""
    old, new = world.token("acme", "ada"), world.token("acme", "ada", jti="new")
    async with world.gateway.client("acme", old, "legacy") as client:
        first = await client.call_tool("tool_exchange", {"as": "x"})
    assert not first.is_error
    client_info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client_info}
    headers = {"accept": "application/json, text/event-stream", "authorization": f"Bearer {old}"}
    opened = await world.gateway.http.post("/t/acme/mcp", json=hello, headers=headers)
    headers |= {"mcp-session-id": opened.headers["mcp-session-id"], "authorization": f"Bearer {new}"}
    call = {"name": "tool_exchange", "arguments": {"as": "x"}}
    message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
    answer = await world.gateway.http.post("/t/acme/mcp", json=message, headers=headers)

    assert answer.status_code == 200
    assert [each["subject_token"] for each in world.endpoints["acme"].exchanged] == [old, new]


async def test_a_token_goes_to_its_own_issuer_only(world: Delegating) -> None:
    """Ours: a credential for one issuer exchanges no token of another issuer of the tenant (TEN-4)."""
    async with recording_upstream() as server:
        await world.gateway.admin.put("/tenants/acme/egress", json={"allow": [server.authority]})
        other = new_issuer(server)
        await add_issuer(world.gateway, "acme", other, name="partner")
        token = other.token(f"{PUBLIC}/t/acme/mcp")
        refused = [await world.call("acme", token, "tool_exchange")]
        for name in ("corp", "partner"):
            assert (await world.gateway.admin.delete(f"/tenants/acme/issuers/{name}")).status_code == 204
        await add_issuer(world.gateway, "acme", other, name="corp")  # another one under the name of the first
        refused.append(await world.call("acme", token, "tool_exchange"))

    assert all("acts for people of the issuer 'corp'" in str(each["content"]) for each in refused)
    assert world.endpoints["acme"].exchanged == []
    assert world.api.seen == []


async def test_requests_without_a_caller_have_no_credential_of_one(world: Delegating) -> None:
    """Ours: a live source, a watch and a sink are refused such a credential, also one that becomes such (TEN-4)."""
    admin, url = world.gateway.admin, world.api.url
    assert (await admin.post("/tenants/acme/resources", json=text_resource("note://a"))).status_code == 201
    live = {"name": "remote", "kind": "mcp", "settings": {"url": f"{url}/mcp"}}
    for path, body in (("watches", {"uri": "note://a", "url": f"{url}/x"}), ("live-sources", live)):
        for name in ("exchange", "assertion"):
            refused = await admin.post(f"/tenants/acme/{path}", json={**body, "credential": name})
            assert (refused.status_code, "names the caller" in refused.text) == (422, True), refused.text
    assert (await admin.post("/tenants/acme/live-sources", json={**live, "credential": "shared"})).status_code == 201
    world.api.seen.clear()
    terms = {"kind": "assertion", "audience": API, "place": "bearer", "origins": [url]}
    assert (await admin.put("/tenants/acme/credentials/shared", json=terms)).status_code == 200

    await admin.post("/tenants/acme/live-sources/remote/attach")

    async def is_notified() -> bool:
        return "names the caller" in (await admin.get("/tenants/acme/live-sources/remote")).text

    await until(is_notified, seconds=30)
    assert not [seen for seen in world.api.seen if "ey" in (seen.header("authorization") or "")]


CLIENT = {"issuer": "corp", "client_id": "gw", "value": "s"}
ACCOUNT = {"client_id": "gw", "value": "s", "authorization_url": "https://a.example", "token_url": "https://a.example"}
WRONG: Sequence[tuple[Mapping[str, Any], str]] = (
    ({"kind": "assertion"}, "/audience"),
    ({"kind": "assertion", "audience": f"{PUBLIC}/t/globex/mcp"}, "/audience"),
    ({"kind": "assertion", "audience": "https://[x"}, "/audience"),
    ({"kind": "assertion", "audience": API, "value": "x"}, "/value"),
    ({"kind": "assertion", "audience": API, "place": "query", "field": "t"}, "/place"),
    ({"kind": "assertion", "audience": API, "issuer": "corp"}, "/issuer"),
    ({"kind": "exchange", "issuer": "corp", "client_id": "gw"}, "/value"),
    ({"kind": "exchange", "issuer": "none", "client_id": "gw", "value": "s"}, "/issuer"),
    ({"kind": "exchange", "client_id": "gw", "value": "s"}, "/issuer"),
    ({"kind": "exchange", **CLIENT, "audience": f"{PUBLIC}/t/globex/mcp"}, "/audience"),
    ({"kind": "exchange", **CLIENT, "audience": f"{PUBLIC.upper()}/admin/v1/tenants/acme"}, "/audience"),
    ({"kind": "exchange", **CLIENT, "audience": "api://acme"}, "/audience"),
    ({"kind": "user", **ACCOUNT, "parameters": {"audience": f"{PUBLIC}/t/globex/mcp"}}, "/parameters"),
    ({"value": "s", "audience": API}, "/audience"),
    ({"kind": "exchange", "issuer": "corp", "client_id": "gw", "value": "s", "scopes": ['a"b']}, "/scopes/0"),
)


async def test_a_delegation_that_cannot_work_is_refused(world: Delegating) -> None:
    """Ours: members that do not fit are refused with their place, and so are tokens for the gateway itself that an
    upstream would receive: with one, it acts as the caller, at another tenant or as an administrator (PRG-1, TEN-4).
    """
    further = await world.gateway.admin.patch("/tenants/acme/issuers/corp", json={"audiences": ["api://acme"]})
    assert further.status_code == 200, further.text
    own = {"name": "own", "kind": "exchange", "place": "bearer", "origins": [PUBLIC], **CLIENT}
    kept = {**own, "audience": f"{PUBLIC}/t/globex/mcp"}
    assert (await world.gateway.admin.post("/tenants/acme/credentials", json=kept)).status_code == 201
    for members, pointer in WRONG:
        body = {"name": "new", "place": "bearer", "origins": [world.api.url], **members}
        answer = await world.gateway.admin.post("/tenants/acme/credentials", json=body)
        assert answer.status_code in {400, 422}, answer.text
        assert answer.json()["errors"][0]["pointer"] == pointer, members


FOR_GATEWAY = (
    f"{PUBLIC}/t/globex/mcp",
    ["https://orders.internal", f"{PUBLIC}/admin/v1/tenants/acme"],
    "HTTPS://Gateway.Example/t/acme/cats/mcp",
    [None, "api://acme"],
)
"""Audiences of tokens that are valid at the gateway: the last one is a further audience of the issuer."""


async def test_a_token_that_is_valid_at_the_gateway_is_not_passed_on(world: Delegating) -> None:
    """MCP: no upstream receives the caller's token or another one for the gateway, whatever an exchange returns, even
    if the credential names no audience; an audience that became one of the gateway is not requested (TEN-4).
    """
    admin, endpoint = world.gateway.admin, world.endpoints["acme"]
    await world.declare("acme", "unnamed", {"kind": "exchange", **CLIENT, "value": "s3cret-client"})
    await world.declare("acme", "later", {"kind": "exchange", **CLIENT, "audience": "api://acme"})
    further = await admin.patch("/tenants/acme/issuers/corp", json={"audiences": ["api://acme"]})
    assert further.status_code == 200, further.text
    for number, audience in enumerate([None, *FOR_GATEWAY]):
        token = world.token("acme", "ada", jti=f"exchanged-{number}")
        endpoint.returned = token if audience is None else world.issuers["acme"].token(audience, sub="ada")
        for tool in ("tool_exchange", "op_exchange", "tool_unnamed", "op_unnamed"):
            result = await world.call("acme", token, tool)
            reason = "caller's own token" if audience is None else "valid at the gateway itself"
            assert (result["isError"], reason in str(result["content"])) == (True, True), (audience, result)
            assert endpoint.returned not in str(result)
    exchanged = len(endpoint.exchanged)
    stored_before = await world.call("acme", world.token("acme", "ada"), "tool_later")
    assert "no upstream may receive" in str(stored_before["content"])
    assert (world.api.seen, len(endpoint.exchanged)) == ([], exchanged)

    endpoint.returned = world.issuers["acme"].token([API, "https://login.example/userinfo"], sub="ada")
    assert not (await world.call("acme", world.token("acme", "ada", jti="fit"), "tool_unnamed")).get("isError")


async def test_an_opaque_token_that_is_valid_at_the_gateway_is_not_passed_on(world: Delegating) -> None:
    """RFC 7662: the issuer names the audience of an exchanged opaque token; another issuer never sees it (TEN-4)."""
    admin, endpoint, server = world.gateway.admin, world.endpoints["acme"], world.issuers["acme"].upstream
    states: dict[str, dict[str, Any]] = {}
    asked: list[str] = []

    def respond(seen: Seen) -> bytes:
        if seen.target != "/introspect":
            return endpoint.respond(seen)
        [token] = parse_qs(seen.body.decode())["token"]
        asked.append(token)
        return orjson.dumps(states.get(token, {"active": False}))

    server.respond = respond
    client = {"client_id": "gateway", "client_secret": "s3cret", "url": f"{server.url}/introspect"}
    changed = await admin.patch("/tenants/acme/issuers/corp", json={"introspection": client})
    assert changed.status_code == 200, changed.text

    async def is_known() -> bool:
        await world.gateway.rpc("acme", "opaque-token-unknown", "tools/list")
        return bool(asked)

    await until(is_known, seconds=30)  # the event of the change arrives later than the response
    asked.clear()
    for name, audience, is_refused in (
        ("for-the-gateway", f"{PUBLIC}/t/acme/mcp", True),
        ("for-several", [API, f"{PUBLIC}/t/acme/mcp"], True),
        ("for-the-api", API, False),
        ("unknown-to-the-issuer", None, False),
    ):
        endpoint.returned = f"opaque-token-{name}"
        if audience is not None:
            states[endpoint.returned] = {"active": True, **world.issuers["acme"].claims(audience)}
        result = await world.call("acme", world.token("acme", "ada", jti=name), "tool_exchange")
        assert (bool(result.get("isError")), "valid at the gateway itself" in str(result)) == (
            is_refused,
            is_refused,
        ), name
        assert (await world.gateway.rpc("acme", endpoint.returned, "tools/list")).status_code == (
            200 if is_refused else 401
        )
    assert [seen.header("authorization") for seen in world.api.seen] == [
        "Bearer opaque-token-for-the-api",
        "Bearer opaque-token-unknown-to-the-issuer",
    ]
    async with recording_upstream() as other:  # then tokens of another issuer are not sent to this endpoint
        await admin.put("/tenants/acme/egress", json={"allow": [other.authority]})
        stopped = await admin.patch("/tenants/acme/issuers/corp", json={"introspection": None})
        opaque = OpaqueTokens(new_issuer(other))
        await add_issuer(world.gateway, "acme", opaque.issuer, name="partner", introspection=opaque.client)
        opaque.asked.clear()
        endpoint.returned = "opaque-token-of-corp"
        result = await world.call("acme", world.token("acme", "ada", jti="other"), "tool_exchange")
    assert (stopped.status_code, result.get("isError", False), opaque.asked) == (200, False, [])


@pytest.mark.parametrize("is_older", [False, True], ids=["newest", "older"])
async def test_a_remote_server_gets_the_identity_of_each_caller_and_no_other(
    both: Delegating, *, is_older: bool
) -> None:
    """Ours: sessions of a federated server belong to one caller; the gateway lists with its own (TEN-4, DYN-5)."""
    world, admin = both, both.gateway.admin
    async with running_sdk_server(is_older=is_older) as server:
        origins = [f"http://127.0.0.1:{server.port}"]
        client = {"issuer": "corp", "client_id": "gw", "value": "s3cret-client"}
        terms: dict[str, dict[str, Any]] = {
            "exchange": {"kind": "exchange", **client},
            "assertion": {"kind": "assertion"},
        }
        for tenant in TENANTS:
            allow = {"allow": [f"127.0.0.1:{server.port}"]}
            (await admin.put(f"/tenants/{tenant}/egress", json=allow)).raise_for_status()
            for name, members in terms.items():
                body = {"place": "bearer", "origins": origins, "audience": API, **members}
                (await admin.put(f"/tenants/{tenant}/credentials/to-{name}", json=body)).raise_for_status()
                live = {"name": name, "kind": "mcp", "settings": {"url": server.url}, "prefix": f"{name}_"}
                live |= {"caller_credential": f"to-{name}"}
                (await admin.post(f"/tenants/{tenant}/live-sources", json=live)).raise_for_status()
        tokens = {(tenant, person): world.token(tenant, person) for tenant in TENANTS for person in PEOPLE}
        for tenant in TENANTS:
            await until(partial(_lists, world, tenant, tokens[tenant, "ada"], "assertion_whoami"), seconds=30)
            await until(partial(_lists, world, tenant, tokens[tenant, "ada"], "exchange_whoami"), seconds=30)
        calls = [(*one, f"{name}_whoami") for one, name in itertools.product(tokens, terms)] * 3

        async def call(tenant: str, person: str, tool: str) -> None:
            result = await world.call(tenant, tokens[tenant, person], tool)
            assert result["content"][0]["text"] == f"{tenant}.{person}", result

        await asyncio.gather(*(call(*each) for each in calls))
        for _ in range(3):
            await call("acme", "ada", "assertion_whoami")
        server.refused |= {value for one in server.headers if "acme.ada." in (value := one.get("authorization", ""))}
        assert (await world.call("acme", tokens["acme", "ada"], "exchange_whoami"))["isError"] is True
        await call("acme", "ada", "exchange_whoami")  # the refused token was dropped
        key = await world.gateway.create_key("acme", "mcp", subject="nightly")
        assert (await world.call("acme", key, "assertion_whoami"))["content"][0]["text"] == "acme.nightly"
        refused = await world.call("acme", key, "exchange_whoami")
        assert (refused["isError"], "acts for the person who calls" in str(refused["content"])) == (True, True)
        kept = await admin.delete("/tenants/acme/credentials/to-exchange")
        assert (kept.status_code, "live source exchange" in kept.text) == (409, True)
        for members, reason in (({"caller_credential": "none"}, "no such"), ({"caller_credential": "shared"}, "for")):
            wrong = await admin.patch("/tenants/acme/live-sources/exchange", json=members)
            assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/caller_credential"), reason
    assert not [one for one in server.headers if any(token in str(one) for token in tokens.values())]
    sessions: dict[str, set[str]] = {}
    for one in server.headers:
        if one.get("authorization", "").startswith("Bearer ey") and "mcp-session-id" in one:
            sessions.setdefault(one["mcp-session-id"], set()).add(one["authorization"])
    # a session that lasts longer than its first assertion has a new one for each request
    assert not is_older or max(len(values) for values in sessions.values()) > 2


async def _lists(world: Delegating, tenant: str, token: str, tool: str) -> bool:
    listed = (await world.gateway.rpc(tenant, token, "tools/list")).json()
    return tool in {one["name"] for one in listed["result"]["tools"]}


async def test_an_echoed_token_of_the_caller_reaches_no_client(world: Delegating) -> None:
    """Ours: neither the model nor the client reads the credential of the caller (TEN-4)."""
    world.api.respond = lambda seen: orjson.dumps({"echo": seen.header("authorization")})
    token = world.token("acme", "ada")
    for tool in ("tool_exchange", "op_exchange", "tool_assertion", "op_assertion", "op_shared"):
        shown = str(await world.call("acme", token, tool))
        sent = (world.api.seen[-1].header("authorization") or "").removeprefix("Bearer ")
        assert sent not in shown
        assert "echo" in shown


async def test_a_reference_is_sent_to_the_origins_of_its_credential_only(world: Delegating) -> None:
    """Ours: a source whose server is elsewhere gets neither the secret nor a token of the caller (TEN-4)."""
    async with recording_upstream() as other:
        await world.gateway.admin.put("/tenants/acme/egress", json={"allow": [other.authority]})
        for name in ("shared", "exchange"):
            more = {"credentials": {"oauth": {"credential": name}}, "prefix": "far_"}
            document = document_of(other.url, name)
            await world.gateway.import_document("acme", document, name=f"far-{name}", **more)
            refused = await world.call("acme", world.token("acme", "ada"), f"far_op_{name}")
            assert "not stored for the origin" in str(refused["content"])

    assert other.seen == []
    assert world.endpoints["acme"].exchanged == []


async def test_a_credential_that_a_scheme_uses_stays(world: Delegating) -> None:
    """Ours: a source's reference keeps the credential; it must exist, and is shown without its secret (PRG-1)."""
    admin = world.gateway.admin
    assert (await admin.delete("/tenants/acme/tools/tool_exchange")).status_code == 204
    kept = await admin.delete("/tenants/acme/credentials/exchange")
    assert (kept.status_code, "source source_exchange" in kept.text) == (409, True)
    more = {"credentials": {"oauth": {"credential": "none"}}, "name": "new"}
    wrong = await admin.post("/tenants/acme/sources", json={"document": document_of(world.api.url, "new"), **more})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/credentials/oauth")
    shown = (await admin.get("/tenants/acme/credentials/exchange")).json()
    token_url = f"{world.issuers['acme'].url}/token"
    assert (shown["kind"], shown["issuer"], shown["status"]["token_url"]) == ("exchange", "corp", token_url)
    assert "s3cret-client" not in str(shown)
    listed = (await admin.get("/tenants/acme/credentials?kind=assertion")).json()["items"]
    assert [one["name"] for one in listed] == ["assertion"]
    assert (await admin.delete("/tenants/acme/sources/source_exchange")).status_code == 204
    assert (await admin.delete("/tenants/acme/credentials/exchange")).status_code == 204
