"""`gateway approval` against a running gateway."""

from typing import Any

from tests.behaviour.cli.conftest import Terminal
from tests.support.gateway import RunningGateway
from tests.support.primitives import add, static_tool


async def test_a_person_on_duty_decides_from_a_terminal(terminal: Terminal, gateway: RunningGateway) -> None:
    """Ours: the person sees what a call would do, decides once, and may not decide its own call (SAF-3, CLI-1)."""
    await gateway.create_tenant("acme")
    await add(gateway, "acme", "tools", static_tool("say"))
    await terminal.do("policy", "update", "--safe", "approve")
    key = await gateway.create_key("acme", "approve", subject="anna")
    assert (await terminal.run("tool", "try", "say")).code == 1

    watched: Any = (await terminal.do("approval", "watch", "--count", "1", "--json", GATEWAY_OPERATOR_KEY=key)).value
    shown = await terminal.do("approval", "show", watched["id"], GATEWAY_OPERATOR_KEY=key)
    own = await terminal.run("approval", "approve", watched["id"])
    done = await terminal.do("approval", "approve", watched["id"], "--comment", "fine", GATEWAY_OPERATOR_KEY=key)
    late = await terminal.run("approval", "deny", watched["id"], GATEWAY_OPERATOR_KEY=key)
    listed = await terminal.do("approval", "list", "--state", "approved", GATEWAY_OPERATOR_KEY=key)
    tried = await terminal.do("tool", "try", "say")

    assert "! A declared handler runs say with these arguments" in shown.out
    assert (own.code, late.code) == (4, 6)
    assert done.out == f"{watched['id']} is approved: say\n"
    assert listed.out.splitlines()[1].split()[:3] == [watched["id"], "approved", "say"]
    assert "hello" in tried.out
