"""Issuers and people from the command line."""

from typing import Any

from tests.behaviour.cli.conftest import Terminal
from tests.support.issuer import new_issuer
from tests.support.upstream import RecordingUpstream


async def test_an_issuer_lives_from_create_to_delete(terminal: Terminal, upstream: RecordingUpstream) -> None:
    """Ours: whom a tenant admits is said in options, shown, changed and removed (PRG-3, TEN-2)."""
    await terminal.do("tenant", "create", "acme")
    issuer = new_issuer(upstream)
    refused = await terminal.run("issuer", "create", "corp", issuer.url)
    assert (refused.code, "--admit" in refused.err) == (2, True)
    refused = await terminal.run("issuer", "create", "corp", issuer.url, "--admit", "role=admin")
    assert (refused.code, "group=NAME" in refused.err) == (2, True)

    admitted = ("--admit", "group=engineers", "--admit", "scope=tools", "--profile", "default")
    more = ("--audience", "api://acme", "--groups-claim", "/realm/roles")
    made: Any = (await terminal.do("issuer", "create", "corp", issuer.url, *admitted, *more, "--json")).value

    told = {"subject": None, "profiles": ["default"]}
    assert made["rules"] == [{"group": "engineers", "scope": None, **told}, {"group": None, "scope": "tools", **told}]
    assert (made["audiences"], made["groups_claim"]) == (["api://acme"], "/realm/roles")
    assert issuer.url in (await terminal.do("issuer", "list", "--enabled")).out
    changed: Any = (await terminal.do("issuer", "update", "corp", "--admit", "everyone", "--disable", "--json")).value
    assert (changed["enabled"], [rule["group"] for rule in changed["rules"]]) == (False, [None])
    assert "corp" not in (await terminal.do("issuer", "list", "--enabled")).out
    lifetime = ("--max-lifetime", "600", "--algorithm", "ES256", "--groups-claim", "groups")
    changed = (await terminal.do("issuer", "update", "corp", *lifetime, "--json")).value
    assert (changed["max_lifetime_s"], changed["algorithms"], changed["enabled"]) == (600, ["ES256"], False)
    assert [rule["group"] for rule in changed["rules"]] == [None]
    await terminal.do("issuer", "update", "corp", "--groups-claim", "/realm/roles")
    assert "/realm/roles" in (await terminal.do("issuer", "show", "corp")).out
    assert (await terminal.do("person", "list", "--denied", "--issuer", "corp", "--json")).value == []
    for verb in ("show", "deny", "allow"):
        assert (await terminal.run("person", verb, "key_none")).code == 5
    assert (await terminal.do("issuer", "delete", "corp", "--yes")).out == "deleted corp\n"
