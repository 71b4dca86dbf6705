"""Access rules that change while clients of both eras are open at another replica."""

import anyio

from tests.behaviour.primitives.conftest import Tenant
from tests.behaviour.primitives.test_kinds import era
from tests.behaviour.primitives.test_live import NOTIFIED_S
from tests.support.primitives import static_tool
from tests.support.replicas import Mode, tool_names, until


@era
async def test_a_rule_changes_open_clients_at_the_other_replica(tenant: Tenant, era: Mode) -> None:
    """Ours: within five seconds the tool leaves and comes back, for lists and calls alike (IDN-4)."""
    a, b = tenant.replicas.a, tenant.replicas.b
    path = f"/tenants/{tenant.slug}/access"
    await tenant.add("tools", static_tool("say"))
    rule = {"effect": "deny", "what": {"names": ["say"]}}

    async with tenant.replicas.client(tenant.slug, tenant.key, era, to=b) as client:
        for rules in ([rule], []):
            (await a.gateway.admin.patch(path, json={"rules": rules})).raise_for_status()

            async def as_wanted(*, is_there: bool = not rules) -> bool:
                return ("say" in await tool_names(client)) is is_there

            await until(as_wanted, seconds=NOTIFIED_S)


async def test_listeners_are_notified_of_rules_that_concern_them(tenant: Tenant) -> None:
    """Ours: `list_changed` follows a change of what the client sees, and no other change of rules (CAP-2, IDN-4)."""
    gateway, path = tenant.replicas.a.gateway, f"/tenants/{tenant.slug}/access"
    await tenant.add("tools", static_tool("say"))
    replicas = tenant.replicas
    others = {"effect": "deny", "who": ["people"]}
    mine = {"effect": "deny", "who": ["keys"], "what": {"names": ["say"]}}

    async with (
        replicas.client(tenant.slug, tenant.key, "2026-07-28", to=replicas.b) as client,
        client.listen(tools_list_changed=True) as received,
    ):
        notified: list[object] = []
        (await gateway.admin.patch(path, json={"rules": [others]})).raise_for_status()
        (await gateway.admin.patch(path, json={"rules": [others, mine]})).raise_for_status()
        with anyio.fail_after(NOTIFIED_S):
            async for event in received:
                notified.append(event)
                break
        assert "say" not in await tool_names(client)
        assert len(notified) == 1
