"""Webhooks, watches and followed resources from the command line, against a running gateway."""

import json
from typing import Any

import anyio

from tests.behaviour.cli.conftest import Terminal
from tests.support.commands import Ended
from tests.support.gateway import RunningGateway
from tests.support.primitives import add, text_resource
from tests.support.replicas import until
from tests.support.upstream import RecordingUpstream

URI = "note://1"


async def _prepare(gateway: RunningGateway) -> str:
    await gateway.create_tenant("acme")
    await add(gateway, "acme", "resources", text_resource(URI))
    return await gateway.create_key("acme")


async def test_updates_of_a_followed_resource_are_printed_at_once(terminal: Terminal, gateway: RunningGateway) -> None:
    """Ours: `resource watch` is a subscriber like any other; `touch` and `webhook test` report a change (RES-5)."""
    key = await _prepare(gateway)
    made: Any = (await terminal.do("webhook", "create", "cms", "--json")).value
    ended: list[Ended] = []

    async def follow() -> None:
        ended.append(await terminal.run("resource", "watch", URI, "--json", "--count", "2", GATEWAY_KEY=key))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow)

        async def has_both() -> bool:  # a follower does not receive updates from before it listens
            await terminal.do("resource", "touch", URI)
            return bool(ended)

        await until(has_both, seconds=60)
    tested = await terminal.do("webhook", "test", "cms", URI, GATEWAY_WEBHOOK_SECRET=made["secret"])

    assert ended[0].code == 0, ended[0].err
    assert [json.loads(line)["updated"] for line in ended[0].out.splitlines()] == [URI, URI]
    assert f"following {URI}" in ended[0].err
    assert URI in tested.out


async def test_an_unreadable_resource_cannot_be_followed(terminal: Terminal, gateway: RunningGateway) -> None:
    """Ours: an absent object is reported at once, with its exit code (CLI-1, RES-4)."""
    key = await _prepare(gateway)

    missing = await terminal.run("resource", "watch", "note://none", GATEWAY_KEY=key)
    anonymous = await terminal.run("resource", "watch", URI, GATEWAY_KEY="x")
    nowhere = await terminal.run("resource", "watch", URI, GATEWAY_KEY=key, GATEWAY_URL="http://127.0.0.1:1")

    assert (missing.code, anonymous.code, nowhere.code) == (5, 4, 3), (missing.err, anonymous.err, nowhere.err)


async def test_a_webhook_lives_from_create_to_delete(terminal: Terminal, gateway: RunningGateway) -> None:
    """Ours: the secret is printed when it is made and never again (RES-5)."""
    await _prepare(gateway)
    created: Any = (await terminal.do("webhook", "create", "cms", "--json")).value
    rotated: Any = (await terminal.do("webhook", "rotate", "cms", "--json")).value
    shown = await terminal.do("webhook", "show", "cms")
    listed = await terminal.do("webhook", "list")
    good = await terminal.run("webhook", "test", "cms", URI, GATEWAY_WEBHOOK_SECRET=created["secret"])
    wrong = await terminal.run("webhook", "test", "cms", URI, GATEWAY_WEBHOOK_SECRET="whsec_AAAA")
    none = await terminal.run("webhook", "test", "cms", URI)
    await terminal.do("webhook", "delete", "cms", "--yes")

    assert created["secret"] != rotated["secret"]
    assert gateway.url + created["status"]["path"] in shown.out
    assert created["status"]["path"] in listed.out
    assert rotated["secret"] not in shown.out + listed.out
    assert (good.code, wrong.code, none.code) == (0, 1, 2), (good.err, wrong.err, none.err)


async def test_a_watch_lives_from_create_to_delete(
    terminal: Terminal, gateway: RunningGateway, upstream: RecordingUpstream
) -> None:
    """Ours: every verb of a noun works and reports what it did (RES-5)."""
    await _prepare(gateway)
    created: Any = (await terminal.do("watch", "create", URI, upstream.url, "--interval", "1h", "--json")).value
    changed: Any = (await terminal.do("watch", "update", created["id"], "--interval", "7200", "--json")).value
    listed, shown = await terminal.do("watch", "list"), await terminal.do("watch", "show", created["id"], "--json")
    same: Any = (await terminal.do("watch", "set", "-", "--json", given=shown.out)).value
    declared = f"uri: {URI}\nurl: {upstream.url}\n"
    nameless = await terminal.run("watch", "set", "-", given=declared)
    await terminal.do("watch", "delete", created["id"], "--yes")
    again: Any = (await terminal.do("watch", "create", "-", "--json", given=declared)).value
    await terminal.do("watch", "delete", again[0]["id"], "--yes")

    assert (created["interval_s"], changed["interval_s"]) == (3600, 7200), "plain seconds are those of older releases"
    assert [created["id"], "2h"] == [word for word in listed.out.split() if word in {created["id"], "2h"}]
    assert same == [changed]
    assert (nameless.code, "/id: required" in nameless.err) == (2, True)
    assert (await terminal.do("watch", "list", "--json")).value == []
