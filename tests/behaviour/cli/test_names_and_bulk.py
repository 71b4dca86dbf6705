"""Names in the place of ids, and several objects in one command, for every declared kind."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import anyio.to_thread
import pytest
from click.testing import CliRunner

from gateway.cli.failures import Failure
from gateway.cli.kinds.places import naming_of
from gateway.cli.main import gateway as command
from gateway.kinds.identity import KEY
from gateway.kinds.index import KINDS
from gateway.kinds.kind import Kind
from gateway.kinds.sources import OVERRIDE
from tests.support.commands import Ended
from tests.support.documents import pets
from tests.support.gateway import OPERATOR_KEY, RunningGateway
from tests.support.kinds import with_key
from tests.support.primitives import add, static_tool, template, text_prompt

_GROUPS: Mapping[str, tuple[str, ...]] = {"audit_sink": ("audit", "sink")}
_LOG_LINE = re.compile(r"^\d{4}-\d\d-\d\dT\S+Z \[.*\n", re.MULTILINE)
Run = Callable[..., Any]


@pytest.fixture
def run(gateway: RunningGateway) -> Run:
    """Runs a command in this process, as an operator of tenant acme."""

    def start(arguments: tuple[str, ...]) -> Ended:
        wanted = ["--url", gateway.url, "--key", OPERATOR_KEY, "--tenant", "acme", *arguments]
        done = CliRunner().invoke(command, wanted, standalone_mode=False)
        if isinstance(done.exception, Failure):
            faults = "".join(f"\n  {one.pointer}: {one.reason}" for one in done.exception.faults)
            return Ended(
                code=done.exception.exit_code, out=_without_logs(done.stdout), err=f"{done.exception.message}{faults}"
            )
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        code = done.return_value if isinstance(done.return_value, int) else done.exit_code
        return Ended(code=code, out=_without_logs(done.stdout), err=done.stderr)

    async def run(*arguments: str) -> Ended:
        return await anyio.to_thread.run_sync(start, arguments)

    return run


async def _prepare(gateway: RunningGateway) -> None:
    await gateway.create_tenant("acme")
    text = {"kind": "template", "text": "x", "mimeType": "text/plain"}
    await add(gateway, "acme", "resource-templates", template("note://{id}", text))
    animals = {"name": "animals", "prefix": "animals", "document": pets("https://pets.example")}
    made = await gateway.admin.post("/tenants/acme/sources", json=animals)
    assert made.status_code == 201, made.text


def _key(kind: Kind[Any], name: str) -> str:
    return {"uri_template": f"memo://{name}/{{id}}", "uri": f"note://{name}"}.get(kind.keyed, name)


async def _create(gateway: RunningGateway, kind: Kind[Any], name: str) -> None:
    example = with_key(kind, kind.example, _key(kind, name)) | ({"source": "animals"} if kind is OVERRIDE else {})
    if kind is OVERRIDE and name == "second":
        example["operation"] = "GET /pets/{petId}"
    if kind.keyed == "id":
        example["name"] = name
    made = await gateway.admin.post(f"/tenants/acme/{kind.plural}", json=example)
    assert made.status_code == 201, made.text


async def test_every_kind_is_named_and_several_are_handled(gateway: RunningGateway, run: Run) -> None:
    """Ours: show, rotate, enable and delete take names of several objects, and report each (CLI-3)."""
    await _prepare(gateway)
    for kind in (kind for kind in KINDS if kind is not OVERRIDE):
        group = _GROUPS.get(kind.name, (kind.name.replace("_", "-"),))
        first, second = (_key(kind, name) for name in ("first", "second"))
        await _create(gateway, kind, "first")
        await _create(gateway, kind, "second")

        both = await run(*group, "show", first, second, "--json")
        assert [_label(kind, one) for one in json.loads(both.out)] == [first, second], kind.name
        text = await run(*group, "show", first, second)
        assert (text.code, first in text.out, second in text.out) == (0, True, True), text
        near = await run(*group, "show", _misspelt(first))
        assert (near.code, f"did you mean {first!r}" in near.err) == (5, True), (kind.name, near)
        some = await run(*group, "show", first, _misspelt(second), "--json")
        assert (some.code, "1 of 2 failed" in some.err, second in some.err) == (9, True, True), (kind.name, some)
        assert json.loads(some.out)[1]["error"]["exit_code"] == 5
        if kind.generates and kind is not KEY:  # one key, or all: its clients need the new secret
            rotated = await run(*group, "rotate", first, second, "--json")
            assert (rotated.code, len({one["secret"] for one in json.loads(rotated.out)})) == (0, 2), rotated
        if "enabled" in kind.filters and kind.key_in:
            done = await run(*group, "disable", "--all", "--search", "second", "--yes")
            assert (done.code, done.out) == (0, f"disabled {second}\n"), done
            assert [
                _label(kind, one) for one in json.loads((await run(*group, "list", "--disabled", "--json")).out)
            ] == [second]
            assert (await run(*group, "enable", second)).out == f"enabled {second}\n"

        refused = await run(*group, "delete", first, second)
        assert (refused.code, "--yes" in refused.err) == (2, True)
        for wrong in ((), ("--all", first, "--yes"), (first, "--search", "x", "--yes")):
            assert (await run(*group, "delete", *wrong)).code == 2
        some = await run(*group, "delete", first, "no-such", "--yes")
        assert (some.code, some.out) == (9, f"deleted {first}\n"), (kind.name, some)
        rest = await run(*group, "delete", "--all", "--search", "second", "--yes", "--json")
        [deleted] = json.loads(rest.out)
        assert (rest.code, second in deleted["deleted"]) == (0, True)
        assert (await run(*group, "delete", "--all", "--search", "second", "--yes")).out.startswith("no ")


async def test_an_ambiguous_name_is_explained(gateway: RunningGateway, run: Run) -> None:
    """Ours: the message has each candidate with its id, which is then written in the place of the name (CLI-3)."""
    await _prepare(gateway)
    [client] = [kind for kind in KINDS if kind.name == "client"]
    await _create(gateway, client, "Reports")
    await _create(gateway, client, "Reports")
    ids = [one["id"] for one in json.loads((await run("client", "list", "--json")).out)]

    refused = await run("client", "show", "Reports")

    assert refused.code == 2
    assert refused.err.splitlines()[0] == "2 of the tenant's clients are known as 'Reports'; write an id:"
    assert sorted(line.split(":")[0].strip() for line in refused.err.splitlines()[1:]) == sorted(ids)
    assert (await run("client", "update", ids[0], "--name", "Others")).code == 0
    assert json.loads((await run("client", "show", "Others", "--json")).out)["id"] == ids[0]
    assert (await run("client", "update", "Others", "--name", "Reports")).code == 0
    assert (await run("client", "rotate", "Reports")).code == 2


async def test_an_approval_is_decided_by_its_tool_after_it_was_shown(gateway: RunningGateway, run: Run) -> None:
    """Attack: a name selects only a pending call, which is shown before a decision (SAF-3, CLI-3)."""
    await _prepare(gateway)
    for name in ("say", "tell"):
        await add(gateway, "acme", "tools", static_tool(name))
    assert (await run("policy", "update", "--safe", "approve")).code == 0
    decider = await gateway.create_key("acme", "approve", subject="anna")
    for name in ("say", "tell"):
        assert (await run("tool", "try", name)).code == 1

    unsure = await run("--key", decider, "approval", "approve", "say")
    done = await run("--key", decider, "approval", "approve", "say", "--yes")
    again = await run("--key", decider, "approval", "deny", "say", "--yes")
    rest = await run("--key", decider, "approval", "deny", "--all", "--tool", "tell", "--yes")

    assert (unsure.code, "--yes" in unsure.err) == (2, True)
    assert (done.code, done.out.endswith(" is approved: say\n")) == (0, True), done
    assert again.code == 5
    assert (rest.code, rest.out.endswith(" is denied: tell\n")) == (0, True), rest


async def test_other_commands_suggest_names_too(gateway: RunningGateway, run: Run) -> None:
    """Ours: a command that is written by hand names what is near, also of several arguments (CLI-3)."""
    await _prepare(gateway)
    await add(gateway, "acme", "prompts", text_prompt("greet"))
    for line, near in (
        (("source", "report", "animal"), "animals"),
        (("source", "versions", "animals2"), "animals"),
        (("source", "refresh", "anmals", "animls"), "animals"),
        (("prompt", "try", "gret"), "greet"),
        (("tool", "try", "animals_get_pe"), "animals_get_pet"),
        (("person", "show", "ada"), ""),
    ):
        if line[1] == "refresh":
            continue  # a report for each of several objects names no tenant
        tenantless = await run("--tenant", "acm", *line)
        assert (tenantless.code, "did you mean --tenant acme?" in tenantless.err) == (5, True), (line, tenantless)
        failed = await run(*line)
        assert (failed.code, f"did you mean {near!r}" in failed.err) == (5, bool(near)), (line, failed)


def _without_logs(text: str) -> str:
    """The output of a command without the log lines of the gateway, which runs in this process."""
    return _LOG_LINE.sub("", text)


def _label(kind: Kind[Any], one: dict[str, Any]) -> str:
    [label, *_] = naming_of(kind).labels(one)
    return label


def _misspelt(name: str) -> str:
    return name.replace("s", "z")
