"""The commands as click sees them: names, options, help, completion."""

import os
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from gateway.cli.click_group import LazyGroup
from gateway.cli.commands.approvals import approval
from gateway.cli.commands.audit import audit
from gateway.cli.commands.credentials import credential
from gateway.cli.commands.identity.access import access
from gateway.cli.commands.identity.issuers import issuer
from gateway.cli.commands.identity.keys import key
from gateway.cli.commands.identity.oauth_clients import client
from gateway.cli.commands.identity.people import account, consent, grant, person
from gateway.cli.commands.live_sources import live_source
from gateway.cli.commands.overrides import override
from gateway.cli.commands.policies import policy
from gateway.cli.commands.prompts import prompt
from gateway.cli.commands.resources import resource, template
from gateway.cli.commands.sources import source
from gateway.cli.commands.tenants import ceilings, egress, tenant
from gateway.cli.commands.tools import tool
from gateway.cli.commands.updates.webhooks import webhook
from gateway.cli.commands.webhook_endpoints import webhook_endpoint
from gateway.cli.input.options import chosen, chosen_url, tenant_option, url_option
from gateway.cli.kinds.groups import GROUPS
from gateway.cli.kinds.index import guardrail, profile, watch
from gateway.cli.kinds.option_types import Assignment
from gateway.cli.main import gateway
from gateway.domain.tenancy.policy import Limits

_GROUPS = {
    "tenant": tenant,
    "key": key,
    "access": access,
    "account": account,
    "client": client,
    "consent": consent,
    "grant": grant,
    "issuer": issuer,
    "person": person,
    "egress": egress,
    "ceilings": ceilings,
    "source": source,
    "override": override,
    "live-source": live_source,
    "tool": tool,
    "resource": resource,
    "resource-template": template,
    "prompt": prompt,
    "profile": profile,
    "credential": credential,
    "webhook": webhook,
    "webhook-endpoint": webhook_endpoint,
    "watch": watch,
    "policy": policy,
    "guardrail": guardrail,
    "audit": audit,
    "approval": approval,
}
_OF_PRIMITIVES = ["create", "delete", "disable", "enable", "list", "show", "try", "update", "validate"]


def _leaves() -> Iterator[tuple[str, click.Command]]:
    for name, group in _GROUPS.items():
        for leaf, command in group.commands.items():
            below = command.commands if isinstance(command, click.Group) else {"": command}
            yield from ((f"{name} {leaf} {last}".rstrip(), one) for last, one in below.items())


def test_every_noun_has_its_verbs() -> None:
    """Ours: the command line offers what the design names."""
    assert {name: sorted(group.commands) for name, group in _GROUPS.items()} == {
        "tenant": ["create", "delete", "deleted", "egress", "list", "rename", "set", "show", "update"],
        "key": ["check", "create", "delete", "end-old-secret", "list", "revoke", "rotate", "set", "show", "update"],
        "account": ["disconnect", "list", "show"],
        "access": ["check", "list", "report", "set", "show", "update"],
        "client": ["create", "delete", "list", "rotate", "set", "show", "update"],
        "consent": ["list", "revoke", "show"],
        "grant": ["list", "revoke", "show"],
        "issuer": ["create", "delete", "list", "refresh-keys", "set", "show", "update"],
        "person": ["allow", "deny", "list", "show"],
        "egress": ["set", "show", "update"],
        "ceilings": ["set", "show", "update"],
        "source": [
            *("activate", "add", "delete", "diff", "list", "overrides", "propose", "refresh", "refuse", "report"),
            *("review", "rollback", "set", "show", "status", "update", "versions"),
        ],
        "live-source": [
            "accept",
            "create",
            "delete",
            "list",
            "primitives",
            "reattach",
            "set",
            "show",
            "update",
        ],
        "tool": sorted([*_OF_PRIMITIVES, "put", "set"]),
        "resource": sorted([*_OF_PRIMITIVES, "set", "touch", "watch"]),
        "resource-template": sorted([*_OF_PRIMITIVES, "set"]),
        "prompt": sorted([*_OF_PRIMITIVES, "set"]),
        **{name: ["create", "delete", "list", "set", "show", "update"] for name in GROUPS},
        "override": ["create", "delete", "list", "set", "show", "update"],
        "credential": ["create", "delete", "list", "set", "show", "test", "update"],
        "webhook": ["create", "delete", "list", "rotate", "set", "show", "test"],
        "webhook-endpoint": [
            "create",
            "delete",
            "deliveries",
            "delivery",
            "list",
            "replay",
            "rotate",
            "set",
            "show",
            "test",
            "update",
        ],
        "policy": ["check", "set", "show", "update"],
        "audit": ["explain", "export", "keys", "list", "retention", "sink", "tail", "verify"],
        "approval": ["approve", "deny", "list", "show", "watch"],
    }
    alone = {
        "diff",
        "plan",
        "apply",
        "connect",
        "export",
        "schema",
        "serve",
        "try",
        "migrate",
        "doctor",
        "secrets",
        "call",
        "explain",
        "stdio",
        "provide",
        "completion",
        "login",
        "logout",
        "context",
        "operator",
    }
    assert set(gateway.commands) == {*_GROUPS, *alone}


def test_every_admin_command_answers_json_and_can_be_pointed_elsewhere() -> None:
    """Ours: `--json` and `--url` everywhere."""
    for name, command in _leaves():
        options = {option for parameter in command.params for option in parameter.opts}

        assert {"--json", "--url", "--key"} <= options, name
        assert ("--tenant" in options) == (not name.startswith("tenant ")), name
        assert command.help, name


def test_help_names_every_command_and_exit_code() -> None:
    """Ours: the first screen is enough to start."""
    shown = CliRunner().invoke(gateway, ["--help"], prog_name="gateway")

    assert shown.exit_code == 0
    for word in (*gateway.commands, "GATEWAY_URL", "GATEWAY_OPERATOR_KEY", "130"):
        assert word in shown.output


def test_no_sentence_of_a_list_of_commands_is_cut() -> None:
    """Ours: the list of commands describes each command."""
    for name in _GROUPS:
        shown = CliRunner().invoke(gateway, [name, "--help"], prog_name="gateway")

        commands = shown.output.partition("Commands:")[2]
        assert commands.count("\n") >= 2
        assert "..." not in commands


def test_a_policy_is_offered_only_the_decisions_that_are_accepted() -> None:
    """Ours: a value that help names is not refused afterwards (SAF-2)."""
    shown = CliRunner().invoke(gateway, ["policy", "update", "--help"], prog_name="gateway")

    assert "[allow|confirm|approve|deny]" in shown.output


def test_a_mistyped_command_is_wrong_usage_with_a_suggestion() -> None:
    """Ours: a near miss is named."""
    shown = CliRunner().invoke(gateway, ["tennant"], prog_name="gateway")

    assert shown.exit_code == 2
    assert "tenant" in shown.stderr


def test_help_and_completion_import_no_command() -> None:
    """Ours: `--help` of the gateway imports no command, and that of no command imports the gateway."""
    program = """
import sys
from gateway.cli.kinds.option_types import Assignment
from gateway.cli.main import gateway
from gateway.domain.tenancy.policy import Limits
def imported(names, *words):
    gateway.main([*words, "--help"], standalone_mode=False)
    return [(words, name) for name in names if name in sys.modules]
heavy = ["pydantic", "mcp", "sqlalchemy", "uvicorn", "redis", "starlette", "jsonschema"]
found = imported([*heavy, "httpx"])
for name in gateway.commands:
    found += imported(heavy, name)
print(len(gateway.commands) > 25, found)
"""

    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)

    assert found.stdout.splitlines()[-1] == "True []"


@pytest.mark.parametrize(
    ("line", "at", "expected"),
    [
        ("gateway te", 1, {"tenant"}),
        ("gateway tenant up", 2, {"update"}),
        ("gateway tenant list --js", 3, {"--json"}),
        ("gateway completion b", 2, {"bash"}),
        ("gateway policy set --safe al", 4, {"allow"}),
    ],
)
def test_a_shell_can_complete_commands_options_and_choices(
    line: str, at: int, expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: completion knows every level."""
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(at))

    shown = BashComplete(gateway, {}, "gateway", "_GATEWAY_COMPLETE").complete()

    assert {entry.split(",")[1] for entry in shown.splitlines()} == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(shell: str) -> None:
    """Ours: one line in a shell's start file is enough."""
    shown = CliRunner().invoke(gateway, ["completion", shell], prog_name="gateway")

    assert shown.exit_code == 0
    assert "_GATEWAY_COMPLETE" in shown.output


@pytest.mark.parametrize(
    ("line", "tenant", "url"),
    [
        ("--tenant first tool list", "first", "http://from-environment"),
        ("tool list --tenant second", "second", "http://from-environment"),
        ("--tenant first --url http://typed tool list -t second", "second", "http://typed"),
        ("--url http://typed/ tool list", "from-environment", "http://typed"),
    ],
)
def test_options_precede_or_follow_the_command(
    line: str, tenant: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: the later word counts, and either counts more than the environment."""
    found: list[str | None] = []

    @tenant_option
    @url_option
    def listen() -> None:
        found.extend((chosen("tenant"), chosen_url()))

    monkeypatch.setitem(tool.commands, "list", click.command("list")(listen))
    monkeypatch.setenv("GATEWAY_TENANT", "from-environment")
    monkeypatch.setenv("GATEWAY_URL", "http://from-environment")

    ended = CliRunner().invoke(gateway, line.split(), prog_name="gateway")

    assert ended.exit_code == 0, ended.output
    assert found == [tenant, url]


def test_limits_are_names_of_the_policy_with_numbers() -> None:
    """Ours: an unknown limit is refused before anything is sent."""
    limit = Assignment(Limits)
    assert limit.convert("burst=5", None, None) == ("burst", 5)
    assert limit.convert("calls_per_second=0.5", None, None) == ("calls_per_second", 0.5)
    for wrong in ("speed=5", "burst", "burst=many"):
        with pytest.raises(click.BadParameter):
            limit.convert(wrong, None, None)


def test_a_lazy_group_refuses_an_unknown_command() -> None:
    """Ours: a wrong entry in the table of commands is found by running it."""
    group = LazyGroup(name="g", lazy={"odd": ("gateway.cli.exit_codes:ExitCode", "Odd.")}, help="", epilog="")

    with pytest.raises(TypeError, match="is not a command"):
        group.get_command(click.Context(group), "odd")
