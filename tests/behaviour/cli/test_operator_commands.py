"""Operators by name at the command line: keys with roles, and the trail of the installation."""

from typing import Any

from tests.behaviour.cli.conftest import Terminal


async def test_an_operator_key_lives_from_create_to_delete(terminal: Terminal) -> None:
    """Ours: a key of an operator is made with a role, shown once, used, rotated and deleted (OPR-3, CLI-1)."""
    await terminal.create_tenant()
    slug = terminal.variables["GATEWAY_TENANT"]
    made: Any = (
        await terminal.do("operator", "key", "create", "ci", "--role", "auditor", "--only-tenant", slug, "--json")
    ).value
    listed = await terminal.do("operator", "key", "list")
    assert ("auditor" in listed.out, made["secret"] in listed.out) == (True, False)
    own = {"GATEWAY_OPERATOR_KEY": made["secret"]}
    assert (await terminal.run("audit", "list", **own)).code == 0
    refused = await terminal.run("tenant", "delete", slug, "--yes", **own)
    assert (refused.code, "no role of operator:ci" in refused.err) == (4, True), refused.err
    trail = await terminal.do("audit", "list", "--installation")
    verified = await terminal.do("audit", "verify", "--installation")
    assert ("operator_key.create" in trail.out, verified.out.startswith("ok: ")) == (True, True)
    widened: Any = (await terminal.do("operator", "key", "update", "ci", "--only-tenant", "all", "--json")).value
    assert widened["tenants"] is None
    rotated: Any = (await terminal.do("operator", "key", "rotate", "ci", "--json")).value
    assert (await terminal.run("audit", "list", **own)).code != 0
    assert (await terminal.run("audit", "list", GATEWAY_OPERATOR_KEY=rotated["secret"])).code == 0
    await terminal.do("operator", "key", "delete", "ci", "--yes")
    assert "ci" not in (await terminal.do("operator", "key", "list")).out
