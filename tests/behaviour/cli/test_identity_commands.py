"""Issuers and people from the command line."""

import json
from pathlib import Path
from typing import Any

from tests.behaviour.cli.conftest import Terminal
from tests.support.accounts import PUBLIC
from tests.support.documents import pets
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.issuer import add_issuer, new_issuer
from tests.support.stand import Stand
from tests.support.upstream import RecordingUpstream


async def test_an_issuer_lives_from_create_to_delete(terminal: Terminal, upstream: RecordingUpstream) -> None:
    """Ours: options declare, show, change and remove the people whom a tenant admits (PRG-3, TEN-2)."""
    await terminal.create_tenant()
    issuer = new_issuer(upstream)
    refused = await terminal.run("issuer", "create", "corp", issuer.url)
    assert (refused.code, "--admit" in refused.err) == (2, True)
    refused = await terminal.run("issuer", "create", "corp", issuer.url, "--admit", "role=admin")
    assert (refused.code, "group=NAME" in refused.err) == (2, True)

    admitted = ("--admit", "group=engineers", "--admit", "scope=tools", "--profile", "default")
    more = ("--audience", "api://acme", "--groups-claim", "/realm/roles")
    made: Any = (await terminal.do("issuer", "create", "corp", issuer.url, *admitted, *more, "--json")).value

    notified = {"subject": None, "profiles": ["default"]}
    assert made["rules"] == [
        {"group": "engineers", "scope": None, **notified},
        {"group": None, "scope": "tools", **notified},
    ]
    assert (made["audiences"], made["groups_claim"]) == (["api://acme"], "/realm/roles")
    assert issuer.url in (await terminal.do("issuer", "list", "--enabled")).out
    changed: Any = (await terminal.do("issuer", "update", "corp", "--admit", "everyone", "--disable", "--json")).value
    assert (changed["enabled"], [rule["group"] for rule in changed["rules"]]) == (False, [None])
    assert "corp" not in (await terminal.do("issuer", "list", "--enabled")).out
    lifetime = ("--max-lifetime", "10m", "--algorithm", "ES256", "--groups-claim", "groups")
    changed = (await terminal.do("issuer", "update", "corp", *lifetime, "--json")).value
    assert (changed["max_lifetime_s"], changed["algorithms"], changed["enabled"]) == (600, ["ES256"], False)
    assert [rule["group"] for rule in changed["rules"]] == [None]
    changed = (await terminal.do("issuer", "update", "corp", "--require-dpop", "--json")).value
    assert (changed["requires_dpop"], made["requires_dpop"]) == (True, False)
    await terminal.do("issuer", "update", "corp", "--groups-claim", "/realm/roles")
    assert "/realm/roles" in (await terminal.do("issuer", "show", "corp")).out
    assert (await terminal.do("person", "list", "--denied", "--issuer", "corp", "--json")).value == []
    for verb in ("show", "deny", "allow"):
        assert (await terminal.run("person", verb, "key_none")).code == 5
    denied: Any = (await terminal.do("person", "deny", "corp:ada lovelace", "--json")).value
    assert (denied["subject"], denied["denied_at"] is not None) == ("corp:ada lovelace", True)
    assert (await terminal.do("person", "list", "--denied", "--issuer", "corp", "--json")).value == [denied]
    assert denied["id"] in (await terminal.do("person", "allow", denied["id"])).out
    allowed: Any = (await terminal.do("person", "show", "corp:ada lovelace", "--json")).value
    assert (allowed["id"], allowed["denied_at"]) == (denied["id"], None)
    for subject in ("corp:a/b", "corp:https://login.example/u/1?x=%2F", "corp:../deny", "corp:a/deny"):
        closed: Any = (await terminal.do("person", "deny", subject, "--json")).value
        admitted_again: Any = (await terminal.do("person", "allow", subject, "--json")).value
        found: Any = (await terminal.do("person", "show", closed["id"], "--json")).value
        assert (closed["subject"], admitted_again["denied_at"], found["subject"]) == (subject, None, subject)
    assert (await terminal.do("person", "show", "corp:a/b")).out
    assert (await terminal.do("issuer", "delete", "corp", "--yes")).out == "deleted corp\n"


async def test_a_credential_that_names_the_caller_is_declared(terminal: Terminal, upstream: RecordingUpstream) -> None:
    """Ours: an exchange is stored for bearer, shown without its secret, and a scheme refers to it by name (PRG-3)."""
    await terminal.create_tenant()
    issuer = new_issuer(upstream)
    issuer.publish(token_endpoint=f"{issuer.url}/token")
    await terminal.do("issuer", "create", "corp", issuer.url, "--admit", "everyone")
    terms = ("--kind", "exchange", "--issuer", "corp", "--client-id", "gw", "--scope", "read", "--origin", upstream.url)
    declared = ("--name", "hr", *terms, "--secret", "hidden")
    found: Any = (await terminal.do("credential", "create", *declared, "--json")).value
    assert (found["kind"], found["place"], found["scopes"]) == ("exchange", "bearer", ["read"])
    shown = (await terminal.do("credential", "show", "hr")).out
    assert f"{issuer.url}/token" in shown
    assert "hidden" not in shown
    assert "hr" in (await terminal.do("credential", "list", "--kind", "exchange")).out
    assert "hr" not in (await terminal.do("credential", "list", "--kind", "shared")).out
    refused = await terminal.run("credential", "create", "--name", "x", "--kind", "assertion", "--origin", upstream.url)
    assert (refused.code != 0, "audience" in refused.err) == (True, True)
    asserted = ("--kind", "assertion", "--audience", "https://hr.internal", "--origin", upstream.url)
    refused = await terminal.run("credential", "create", "--name", "x", *asserted)
    assert "GATEWAY_PUBLIC_URL" in refused.err


async def test_a_credential_of_users_accounts_is_declared(terminal: Terminal, stand: Stand, tmp_path: Path) -> None:
    """Ours: its terms in options, the redirect URI for the server's administrator, and no secret (PRG-3, IDN-3).

    Clients of issuers may have references to external stores in place of secrets (IDN-5).
    """
    await terminal.create_tenant()
    secret = "s3cret-of-the-client"
    terms = ("--name", "tracker", "--kind", "user", "--client-id", "gateway-client", "--secret", "env:TRACKER")
    more = ("--scope", "read", "--parameter", "prompt=consent", "--origin", "https://api.example")
    urls = ("--authorization-url", "https://login.example/a", "--token-url", "https://login.example/t")
    refused = await terminal.run("credential", "create", *terms, *more, *urls, TRACKER=secret)
    assert (refused.code != 0, "GATEWAY_PUBLIC_URL" in refused.err) == (True, True), refused
    async with running_gateway(
        stand.database.app_url, stand.redis_url, public_url=PUBLIC, secret_folder=tmp_path
    ) as gateway:
        near = {"GATEWAY_URL": gateway.url, "TRACKER": secret}
        sign_in, admitted = ("--client-id", "a", "--reference"), ("--admit", "everyone", "--disable")
        asked = ("--introspection-client", "b", "--introspection-reference", "file:idp/b")
        create = ("issuer", "create", "lab", "https://lab.example", *admitted, *asked, *sign_in)
        wrong = await terminal.run(*create, "env:A", **near)
        assert (wrong.code, "belong to --secret" in wrong.err) == (2, True), wrong
        await terminal.do(*create, "file:idp/a", **near)
        await terminal.do("issuer", "update", "lab", "--grant-idle", "1d", "--introspection-cache", "5s", **near)
        lab = (await terminal.do("issuer", "show", "lab", **near)).out
        assert ("file:idp/a" in lab, "file:idp/b" in lab) == (True, True), lab
        stored: Any = (await terminal.do("issuer", "update", "lab", "--secret", "env:TRACKER", "--json", **near)).value
        places = [stored[part]["client_secret_reference"] is None for part in ("sign_in", "introspection")]
        assert places == [True, False]
        wrong = await terminal.run("credential", "create", *terms, "--parameter", "prompt", **near)
        assert (wrong.code, "NAME=VALUE" in wrong.err) == (2, True)
        wrong = await terminal.run("credential", "create", *terms, *more, *urls[:2], **near)
        assert (wrong.code != 0, "token_url" in wrong.err) == (True, True), wrong
        made: Any = (await terminal.do("credential", "create", *terms, *more, *urls, "--json", **near)).value
        shown = (await terminal.do("credential", "show", "tracker", **near)).out
        other = ("--parameter", "prompt=login")
        await terminal.do("credential", "update", *terms, *more[:2], *other, *more[4:], *urls, **near)
        changed: Any = (await terminal.do("credential", "list", "--kind", "user", "--json", **near)).value
    callback = f"{PUBLIC}/t/acme/connect/tracker/callback"
    assert (made["kind"], made["place"], made["scopes"]) == ("user", "bearer", ["read"])
    assert made["status"]["redirect_uri"] == callback
    assert made["parameters"] == {"prompt": "consent"}
    assert callback in shown
    assert "https://login.example/t" in shown
    assert secret not in shown + str(made)
    assert [one["parameters"] for one in changed] == [{"prompt": "login"}]


async def test_a_person_uses_the_commands_with_an_access_token(
    terminal: Terminal, gateway: RunningGateway, upstream: RecordingUpstream
) -> None:
    """Ours: in place of a key, in the variable or the option; the refusal names the missing role (PRG-3, IDN-4)."""
    await gateway.create_tenant("acme")
    issuer = new_issuer(upstream)
    await add_issuer(gateway, "acme", issuer)
    roles = [{"role": "audit", "who": ["subject:corp:ada"]}]
    await gateway.admin.patch("/tenants/acme/access", json={"rules": [], "roles": roles})
    token = issuer.token(f"{gateway.url}/admin/v1/tenants/acme")
    read = await terminal.do("audit", "list", GATEWAY_OPERATOR_KEY="", GATEWAY_KEY=token)
    assert "access.update" in read.out
    refused = await terminal.run("tool", "list", "--key", token)
    assert (refused.code != 0, "no role of this person permits it (admin)" in refused.err) == (True, True), refused


async def test_access_rules_from_the_command_line(
    terminal: Terminal, upstream: RecordingUpstream, tmp_path: Path
) -> None:
    """Ours: rules are set from a file with warnings, reported, checked for a person or key, and explained (IDN-4)."""
    await terminal.create_tenant()
    document = tmp_path / "pets.json"
    document.write_text(json.dumps(pets(upstream.url)))
    await terminal.do("source", "add", "api", str(document))
    excepted = ["group:corp:vets", "scope:corp:vet"]
    rules = {
        "rules": [{"effect": "deny", "unless": excepted, "what": {"names": ["get_pet"]}, "reason": "vets"}],
        "roles": [{"role": "approve", "who": ["group:corp:vets"], "unless": ["subject:corp:eve"]}],
    }
    file = tmp_path / "rules.json"
    file.write_text(json.dumps(rules))
    report = await terminal.do("access", "report", str(file))
    assert "get_pet" in report.out
    done = await terminal.do("access", "set", str(file))
    assert "deny everyone, unless group:corp:vets, scope:corp:vet: names get_pet (vets)" in done.out
    for entry in excepted:
        assert f"no such key or issuer: {entry}" in done.err
    assert "approve: group:corp:vets, unless subject:corp:eve" in done.out
    assert "role 1: the tenant has no such issuer: group:corp:vets" in done.err
    assert (await terminal.do("access", "show")).out == done.out

    vet, other = ("--as-subject", "corp:ada", "--as-group", "corp:vets"), ("--as-subject", "corp:bob", "--as-no-group")
    denied = (await terminal.do("access", "check", *other, "--denied")).out
    assert "access rule 1 denies it: vets" in denied
    assert (await terminal.do("access", "check", *vet, "--denied", "--family", "tool", "--json")).value == []
    assert "roles: approve" in (await terminal.do("access", "check", *vet)).out
    assert "roles:" not in (await terminal.do("access", "check", *other)).out
    await terminal.do("policy", "update", "--safe", "approve")
    approvers = (await terminal.run("explain", "get_pet", "id=7", *vet)).out
    assert "group:corp:vets, unless subject:corp:eve" in approvers
    await terminal.do("policy", "update", "--safe", "allow")
    explained = await terminal.run("explain", "get_pet", "id=7", *other)
    assert (explained.code, "access rule 1 denies it: vets" in explained.out) == (1, True)
    assert "a token with the scope corp:vet may use it" in explained.out
    assert (await terminal.run("explain", "get_pet", "id=7", *other, "--as-scope", "corp:vet")).code == 0
    assert (await terminal.run("access", "check", "--as-key", "k", "--as-scope", "corp:vet")).code == 2
    assert (await terminal.run("explain", "get_pet", "id=7", *vet)).code == 0
    assert (await terminal.run("access", "check", "--as-key", "key_none")).code == 5
    assert (await terminal.run("access", "check", "--as-key", "k", *vet)).code == 2
