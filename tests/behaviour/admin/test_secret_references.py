"""Credentials whose secret stays in a file, a variable or Vault: read at use, apart by tenant, closed on failure."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from gateway.app.secret_stores import read_vault_url
from gateway.errors import BrokenSetting
from gateway.store.database.connection import connect_owner
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.issuer import OpaqueTokens, add_issuer, new_issuer
from tests.support.primitives import add, tool
from tests.support.provider import CLIENT_ID, CLIENT_SECRET, Visitor, running_provider
from tests.support.replicas import commanding
from tests.support.servers import TestDatabase, TestServers
from tests.support.upstream import RecordingUpstream, recording_upstream
from tests.support.vault import ROLE_ID, ROOT_TOKEN, SECRET_ID, VaultServer, running_vault

CANARY = "canary-of-a-store-5d1c"
VARIABLE = "OUTSIDE_TOKEN"


@dataclass(slots=True)
class Outside:
    """A gateway with two tenants, and the stores that it may read."""

    gateway: RunningGateway
    upstream: RecordingUpstream
    vault: VaultServer
    folder: Path
    database: TestDatabase
    redis_url: str
    keys: dict[str, str]

    async def refer(self, slug: str, reference: dict[str, Any], *, key: str | None = None, name: str = "vendor") -> Any:
        """Store or replace a credential with a reference, by the operator or with a key."""
        body = {"place": "bearer", "origins": [self.upstream.url], "reference": reference}
        path = f"/tenants/{slug}/credentials/{name}"
        if key is None:
            return await self.gateway.admin.put(path, json=body)
        headers = {"authorization": f"Bearer {key}"}
        return await self.gateway.http.put(f"/admin/v1{path}", json=body, headers=headers)

    async def call(self, slug: str) -> tuple[bool, str, list[str]]:
        """The outcome of a call with the credential, its text, and the credentials that the upstream got."""
        self.upstream.reset()
        called = (await self.gateway.rpc(slug, self.keys[slug], "tools/call", {"name": "send", "arguments": {}})).json()
        sent = [value for request in self.upstream.seen for name, value in request.headers if name == "Authorization"]
        result = called["result"]
        return result["isError"], result["content"][0]["text"], sent

    async def forget(self, slug: str) -> None:
        """Change the catalog, so that no cached secret is used."""
        (await self.gateway.admin.patch(f"/tenants/{slug}", json={"name": os.urandom(4).hex()})).raise_for_status()


@asynccontextmanager
async def _outside(servers: TestServers, folder: Path, **settings: Any) -> AsyncGenerator[Outside]:
    async with AsyncExitStack() as stack:
        database = stack.enter_context(servers.database())
        upstream = await stack.enter_async_context(recording_upstream())
        vault = await stack.enter_async_context(running_vault())
        redis_url = servers.empty_redis()
        signing_in = settings.pop("sign_in", f"token:{ROOT_TOKEN}")
        gateway = await stack.enter_async_context(
            running_gateway(
                database.app_url,
                redis_url,
                egress_allow=[upstream.authority],
                secret_folder=folder,
                secret_variables=(VARIABLE,),
                vault_url=f"{vault.url.replace('//', f'//{signing_in}@')}/kv/tenants",
                **settings,
            )
        )
        keys: dict[str, str] = {}
        for slug in ("acme", "globex"):
            await gateway.create_tenant(slug)
            (folder / slug).mkdir()
            send = {"kind": "http", "method": "GET", "url": f"{upstream.url}/x", "credential": "vendor"}
            stored = {"name": "vendor", "place": "bearer", "origins": [upstream.url], "value": "first"}
            (await gateway.admin.post(f"/tenants/{slug}/credentials", json=stored)).raise_for_status()
            await add(gateway, slug, "tools", tool("send", send, safety="safe"))
            keys[slug] = await gateway.create_key(slug)
        yield Outside(gateway, upstream, vault, folder, database, redis_url, keys)


@pytest.fixture
async def outside(servers: TestServers, tmp_path: Path) -> AsyncGenerator[Outside]:
    async with _outside(servers, tmp_path) as found:
        yield found


async def test_a_file_is_read_at_each_use_and_only_the_tenants_own(outside: Outside) -> None:
    """Ours: rotation in the file is picked up; no path and no link leads to another tenant (IDN-5, TEN-5)."""
    (outside.folder / "acme" / "token").write_text(f"{CANARY}-1\n")
    (outside.folder / "globex" / "token").write_text(f"{CANARY}-globex\n")
    admin = await outside.gateway.create_key("acme", "admin")
    made = await outside.refer("acme", {"store": "file", "path": "token"}, key=admin)
    assert (made.status_code, made.json()["reference"]["path"]) == (200, "token")
    assert (await outside.call("acme"))[2] == [f"Bearer {CANARY}-1"]
    (outside.folder / "acme" / "token").write_text(f"{CANARY}-2")
    await outside.forget("acme")
    assert (await outside.call("acme"))[2] == [f"Bearer {CANARY}-2"]

    outer = ("../globex/token", "/etc/passwd", "a/../../globex/token", ".hidden", "..", "a//b", "a\x00b", "%2e%2e/x")
    for path in outer:
        refused = await outside.refer("acme", {"store": "file", "path": path}, key=admin)
        assert refused.status_code == 400, path
    links: dict[str, str | None] = {
        "link": "../globex/token",
        "folder": "../globex",
        "out": "/etc/passwd",
        "loop": "loop",
    }
    links |= {"fifo": None, "dir": ""}
    for name, target in links.items():
        place = outside.folder / "acme" / name
        if target is None:
            os.mkfifo(place)
        elif name == "dir":
            place.mkdir()
        else:
            place.symlink_to(target)
        path = "folder/token" if name == "folder" else name
        assert (await outside.refer("acme", {"store": "file", "path": path}, key=admin)).status_code == 200
        is_error, text, sent = await outside.call("acme")
        assert (is_error, sent, CANARY in text) == (True, [], False), name
    inside = outside.folder / "acme" / "..data"
    inside.mkdir()
    (inside / "token").write_text(f"{CANARY}-mounted")
    (outside.folder / "acme" / "mounted").symlink_to("..data/token")
    await outside.refer("acme", {"store": "file", "path": "mounted"}, key=admin)
    assert (await outside.call("acme"))[2] == [f"Bearer {CANARY}-mounted"]


async def test_a_variable_is_the_operators_alone(outside: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a tenant names no variable of the gateway, and the operator only those on the list (IDN-5, TEN-5)."""
    monkeypatch.setenv(VARIABLE, f"{CANARY}-variable")
    admin = await outside.gateway.create_key("acme", "admin")
    listed, other = ({"store": "variable", "path": name} for name in (VARIABLE, "GATEWAY_OPERATOR_KEY"))
    for reference in (listed, other):
        refused = await outside.refer("acme", reference, key=admin)
        assert (refused.status_code, "only the operator" in refused.text) == (400, True)
    assert "GATEWAY_SECRET_VARIABLES" in (await outside.refer("acme", other)).text
    assert (await outside.refer("acme", listed)).status_code == 200
    assert (await outside.call("acme"))[2] == [f"Bearer {CANARY}-variable"]
    await outside.refer("acme", listed, key=admin)
    moved = {"place": "header", "field": "X-A", "origins": [f"{outside.upstream.url}0"], "reference": listed}
    path = "/admin/v1/tenants/acme/credentials/vendor"
    answer = await outside.gateway.http.put(path, json=moved, headers={"authorization": f"Bearer {admin}"})
    assert answer.status_code == 400


async def test_vault_is_read_at_each_use_and_fails_closed(outside: Outside) -> None:
    """Ours: KV v2 by mount, path and field; whatever the server answers, no call goes out without it (IDN-5)."""
    vault = outside.vault
    vault.stored["kv/tenants/acme/billing/stripe"] = {"token": f"{CANARY}-1", "count": 7}
    vault.stored["kv/tenants/globex/billing/stripe"] = {"token": f"{CANARY}-globex"}
    reference = {"store": "vault", "path": "billing/stripe", "field": "token"}
    assert (await outside.refer("acme", reference)).status_code == 200
    assert (await outside.call("acme"))[2] == [f"Bearer {CANARY}-1"]
    seen = len(vault.seen)
    assert (await outside.call("acme"))[2] == [f"Bearer {CANARY}-1"]
    assert len(vault.seen) == seen
    assert vault.seen[-1] == ("GET", "/v1/kv/data/tenants/acme/billing/stripe")
    vault.stored["kv/tenants/acme/billing/stripe"] = {"token": f"{CANARY}-2"}
    await outside.forget("acme")
    assert (await outside.call("acme"))[2] == [f"Bearer {CANARY}-2"]

    hostile: list[dict[str, Any]] = [
        {"status": 404},
        {"status": 403},
        {"status": 503},
        {"status": 302, "headers": f"Location: {outside.upstream.url}/x\r\n"},
        {"body": b"x" * 1_000_000},
        {"body": b"{" * 100_000},
        {"body": b'{"data":{"data":{"token":7}}}'},
        {"body": b'{"data":{"data":{"token":""}}}'},
        {"body": b'{"data":[]}'},
        {"body": b'{"data":{"data":{"token":"a\\r\\nX-Evil: 1"}}}'},
    ]
    for answer in hostile:
        for name in ("status", "headers", "body"):
            setattr(vault, name, answer.get(name, "" if name == "headers" else None))
        await outside.forget("acme")
        is_error, text, sent = await outside.call("acme")
        assert (is_error, sent, CANARY in text) == (True, [], False), (answer, text)
    vault.status, vault.headers, vault.body = None, "", None
    vault.gate = asyncio.Event()
    await outside.forget("acme")
    is_error, text, sent = await outside.call("acme")
    assert (is_error, sent) == (True, []), text
    vault.gate.set()
    vault.gate = None

    wrong_places = (("../globex/billing/stripe", "token"), ("billing/stripe", None), ("a?b", "token"), ("a", "b/c"))
    for path, field in wrong_places:
        wrong = {"store": "vault", "path": path, "field": field}
        assert (await outside.refer("acme", wrong)).status_code == 400, path


async def test_the_gateway_signs_in_by_role_and_again_when_its_token_ends(servers: TestServers, tmp_path: Path) -> None:
    """Ours: AppRole; a revoked token is replaced within the call, a refused sign-in is an error of it (IDN-5)."""
    async with _outside(servers, tmp_path, sign_in=f"approle:{ROLE_ID}:{SECRET_ID}") as outside:
        vault = outside.vault
        vault.stored["kv/tenants/acme/x"] = {"v": CANARY}
        await outside.refer("acme", {"store": "vault", "path": "x", "field": "v"})
        assert (await outside.call("acme"))[2] == [f"Bearer {CANARY}"]
        vault.tokens.clear()
        await outside.forget("acme")
        assert (await outside.call("acme"))[2] == [f"Bearer {CANARY}"]
        assert [target for method, target in vault.seen if method == "POST"] == ["/v1/auth/approle/login"] * 2


async def test_the_secret_of_an_introspection_client_stays_in_its_store(
    outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: it is used for 15 s, from the tenant's own place; a new one is used at once (IDN-5, TEN-5)."""
    gateway, vault, tokens = outside.gateway, outside.vault, OpaqueTokens(new_issuer(outside.upstream))
    place, path = "kv/tenants/acme/idp", "/tenants/acme/issuers/corp"
    vault.stored |= {place: {"secret": tokens.secret}, "kv/tenants/globex/idp": {"secret": "of globex"}}
    reference = {"store": "vault", "path": "idp", "field": "secret"}
    client: dict[str, Any] = {"client_id": "gateway", "client_secret_reference": reference}

    async def status(token: str) -> int:
        return (await gateway.rpc("acme", token, "tools/list")).status_code

    def add(token: str) -> str:
        return tokens.add(token, f"{gateway.url}/t/acme/mcp")

    made = await add_issuer(gateway, "acme", tokens.issuer, introspection=client)
    foreign: dict[str, Any] = {"name": "corp", "url": tokens.issuer.url, "rules": [{}], "introspection": client}
    refused = await gateway.admin.post("/tenants/globex/issuers", json=foreign)
    seen = len(vault.seen)
    statuses = [await status(add(f"token-of-{name}")) for name in ("ada", "bob")]
    assert (made["introspection"]["client_secret_reference"], statuses) == (reference, [200, 200])
    assert (refused.status_code, "invalid_client" in refused.text, len(vault.seen)) == (400, True, seen + 1)
    tokens.secret, vault.stored[place] = "second", {"secret": "second"}
    with anyio.fail_after(10):
        while await status(add("token-of-carl")) != 200:  # noqa: ASYNC110  # no event: read again after a second
            await anyio.sleep(0.1)

    async def change(key: str | None = None, **more: Any) -> tuple[int, str]:
        sent = {"introspection": {"client_id": "gateway", **more}}
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        answer = await gateway.admin.patch(path, json=sent, headers=headers)
        return answer.status_code, answer.text

    kept = await change(cache_s=9)
    assert (kept[0], json.loads(kept[1])["introspection"]["client_secret_reference"]) == (200, reference)
    monkeypatch.setenv(VARIABLE, "second")
    admin, variable = await gateway.create_key("acme", "admin", "mcp"), {"store": "variable", "path": VARIABLE}
    wrong: list[tuple[str | None, dict[str, Any], str]] = [
        (None, {"client_secret": "second", "client_secret_reference": reference}, "give one of them"),
        (None, {"client_secret_reference": {**reference, "path": "../globex/idp"}}, "client_secret_reference/path"),
        (None, {"client_secret_reference": {**reference, "path": "none"}}, "no secret at this path"),
        (admin, {"client_secret_reference": variable}, "only the operator"),
    ]
    for key, members, reason in wrong:
        code, text = await change(key, **members)
        assert (code, reason in text, "second" in text) == (400, True, False), text
    assert (await change(client_secret_reference=variable))[0] == 200
    assert (await change(admin, cache_s=8))[0] == 200
    moved = await change(admin, client_secret_reference=variable, url=f"{tokens.issuer.url}/x")
    assert (moved[0], await status(add("token-of-dora"))) == (400, 200)

    assert (await change(client_secret_reference=reference))[0] == 200
    del vault.stored[place]
    assert (await gateway.admin.patch(path, json={"max_lifetime_s": 900})).status_code == 200
    assert await status(add("token-of-emil")) == 503
    examined = {one["check"]: one for one in (await gateway.admin.get("/doctor")).json()["findings"]}
    assert "acme: introspection of the issuer corp: vault" in examined["secret_references"]["detail"]
    stored = await change(client_secret="second")
    assert (stored[0], json.loads(stored[1])["introspection"]["client_secret_reference"]) == (200, None)
    assert await status(add("token-of-finn")) == 200


async def test_the_secret_of_a_sign_in_client_stays_in_its_store(outside: Outside) -> None:
    """Ours: people sign in at a certified provider with the secret that the file has now (IDN-2, IDN-5)."""
    gateway, file, page = outside.gateway, outside.folder / "acme" / "idp", f"{outside.gateway.url}/t/acme/sign-in"
    async with running_provider([f"{page}/corp/callback"]) as provider, Visitor("ada", until=page) as ada:
        await gateway.admin.put("/tenants/acme/egress", json={"allow": [provider.authority]})
        client = {"client_id": CLIENT_ID, "client_secret_reference": {"store": "file", "path": "idp"}}
        body: dict[str, Any] = {"name": "corp", "url": provider.url, "rules": [{}], "sign_in": client}
        made = await gateway.admin.post("/tenants/acme/issuers", json=body)
        shown = {"store": "file", "path": "idp", "field": None}
        assert (made.status_code, made.json()["sign_in"]["client_secret_reference"]) == (201, shown), made.text

        async def refusal() -> str:
            with pytest.raises(AssertionError):  # the page of an error has no form
                await ada.go(page)
            return ada.seen[-1].text

        assert "cannot read the secret of its client" in await refusal()
        examined = {one["check"]: one for one in (await gateway.admin.get("/doctor")).json()["findings"]}
        assert "acme: sign_in of the issuer corp: the file" in examined["secret_references"]["detail"]
        file.write_text("of another client")
        assert "gave no tokens" in await refusal()
        file.write_text(f"{CLIENT_SECRET}\n")
        await ada.go(page)
        assert "corp:ada" in (await ada.http.get(page)).text
        kept = await gateway.admin.patch(
            "/tenants/acme/issuers/corp", json={"sign_in": {"client_id": CLIENT_ID, "scopes": ["openid"]}}
        )
        assert kept.json()["sign_in"]["client_secret_reference"] == shown
        assert str(outside.folder) not in "".join(answer.text for answer in ada.seen)


async def test_a_secret_of_a_store_is_nowhere_else(outside: Outside) -> None:
    """Ours: the secret is in no log, answer, audit entry, table or key of Redis; the doctor reads it too (TEN-4)."""
    outside.vault.stored["kv/tenants/acme/x"] = {"v": CANARY}
    with capture_logs() as lines:
        shown = await outside.refer("acme", {"store": "vault", "path": "x", "field": "v"})
        tested = await outside.gateway.admin.post("/tenants/acme/credentials/vendor/test")
        assert (tested.status_code, tested.json()) == (200, {"reference": "vault:x#v"})
        assert (await outside.call("acme"))[2] == [f"Bearer {CANARY}"]
        findings = {one["check"]: one for one in (await outside.gateway.admin.get("/doctor")).json()["findings"]}
        assert findings["secret_references"]["status"] == "ok"
        del outside.vault.stored["kv/tenants/acme/x"]
        failed = await outside.gateway.admin.post("/tenants/acme/credentials/vendor/test")
        assert (failed.status_code, failed.json()["code"]) == (502, "upstream.secret_unavailable")
        examined = (await outside.gateway.admin.get("/doctor")).json()["findings"]
    [finding] = [one for one in examined if one["check"] == "secret_references"]
    assert (finding["status"], "acme: vendor" in finding["detail"]) == ("warning", True)
    audit = (await outside.gateway.admin.get("/tenants/acme/audit")).text
    connection = await connect_owner(outside.database.superuser_url)
    tables = await connection.fetch("select tablename from pg_tables where schemaname = 'public'")
    dump = "".join([repr(await connection.fetch(f"select * from {row['tablename']}")) for row in tables])
    await connection.close()
    with commanding(outside.redis_url) as command:
        names: Any = command("KEYS", "*")
        kept = repr([command("DUMP", name) for name in names])
    for place in (repr(lines), shown.text, tested.text, audit, dump, kept, repr(findings), failed.text):
        assert CANARY not in place
        assert ROOT_TOKEN not in place


@pytest.mark.parametrize(
    "url",
    [
        "http://token:t@vault.internal:8200/kv",
        "https://vault.internal:8200/kv",
        "https://token:t@vault.internal:8200",
        "https://token@vault.internal:8200/kv",
        "https://approle:role@vault.internal:8200/kv",
        "https://ldap:role@vault.internal:8200/kv",
        "https://token:t@vault.internal:99999/kv",
        "https://token:t@vault.internal/kv?namespace=a",
    ],
)
def test_an_unsafe_or_incomplete_vault_url_is_refused_without_its_secret(url: str) -> None:
    """Ours: the token leaves this machine over TLS only, and no message repeats it (IDN-5, TEN-4)."""
    with pytest.raises(BrokenSetting, match="GATEWAY_VAULT_URL: must be https") as refused:
        read_vault_url(url)
    assert "vault.internal" not in refused.value.message


def test_a_pod_signs_in_with_its_service_account() -> None:
    """Ours: the three ways to sign in, and the place of the tenants, are one setting (IDN-5)."""
    found = read_vault_url("https://kubernetes:gateway@[fd00::5]:8200/kv/team/tenants/")
    assert (found.url, found.path, found.role) == ("https://[fd00::5]:8200", "kv/team/tenants", "kubernetes:gateway")
    assert read_vault_url("https://token:a%2Fb@vault/kv").token == "a/b"
