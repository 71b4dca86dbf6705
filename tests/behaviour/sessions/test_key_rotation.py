"""The rotation of a key with two secrets: what goes on, and what ends with the old one, on two replicas."""

from typing import Any

import anyio

from tests.behaviour.sessions.conftest import Talk
from tests.support.events import PATIENCE_S, Wire, call
from tests.support.primitives import add, static_tool
from tests.support.replicas import Replica, until


async def _rotate(talk: Talk, verb: str = "rotate", body: dict[str, Any] | None = None) -> dict[str, Any]:
    key = f"key_{talk.key.split('_')[2]}"
    answer = await talk.gateway.admin.post(f"/tenants/{talk.slug}/keys/{key}/{verb}", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def _calls(talk: Talk, key: str, at: Replica) -> int:
    """The status of a call of 2026-07-28 at one replica."""
    params = {"name": "echo", "arguments": {"name": "x"}}
    return (await at.gateway.rpc(talk.slug, key, "tools/call", params)).status_code


def _with(wire: Wire, key: str) -> Wire:
    """The same session, by a client with another text of the key."""
    return Wire(wire.replicas, wire.slug, key, session=wire.session)


async def test_a_rotation_with_an_overlap_interrupts_nothing(bare_talk: Talk) -> None:
    """Ours: both texts, sessions and streams of both eras go on; only what the old one opened ends with it (IDN-5)."""
    a, b = bare_talk.replicas.all
    wire = await bare_talk.wire()
    async with (
        bare_talk.replicas.client(bare_talk.slug, bare_talk.key, to=b) as client,
        client.listen(tools_list_changed=True) as modern,
        wire.listening(b) as stream,
    ):
        await stream.next()
        minted = await _rotate(bare_talk, body={"overlap_s": 3600})
        assert [await _calls(bare_talk, key, at) for key in (bare_talk.key, minted["key"]) for at in (a, b)] == [
            200
        ] * 4
        renewed = _with(wire, minted["key"])
        assert (await renewed.post(b, call("echo", {"name": "x"}))).json()["result"]["isError"] is False
        async with (
            bare_talk.replicas.client(bare_talk.slug, minted["key"], to=b) as other,
            other.listen(tools_list_changed=True) as stays,
        ):
            await add(bare_talk.gateway, bare_talk.slug, "tools", static_tool("brand_new"))
            with anyio.fail_after(PATIENCE_S):
                await anext(aiter(modern))
                await anext(aiter(stays))
            assert (await stream.message())["method"] == "notifications/tools/list_changed"

            assert (await _rotate(bare_talk, "end-old-secret"))["old_secret_until"] is None
            assert await stream.rest() == []
            with anyio.fail_after(PATIENCE_S):
                async for event in modern:
                    assert event
            assert [await _calls(bare_talk, bare_talk.key, at) for at in (a, b)] == [401, 401]
            await add(bare_talk.gateway, bare_talk.slug, "tools", static_tool("newer"))
            with anyio.fail_after(PATIENCE_S):
                await anext(aiter(stays))
        assert (await renewed.post(a, call("echo", {"name": "x"}))).json()["result"]["isError"] is False
        await renewed.close()


async def test_an_old_secret_ends_by_itself_with_its_streams(bare_talk: Talk) -> None:
    """Ours: when the overlap is over, both replicas refuse the old text and its streams end (IDN-5, TEN-2)."""
    a, b = bare_talk.replicas.all
    wire = await bare_talk.wire()
    async with wire.listening(b) as stream:
        await stream.next()
        minted = await _rotate(bare_talk, body={"overlap_s": 1})
        with b.hurrying():
            assert await stream.rest() == []

    async def is_refused() -> bool:
        return [await _calls(bare_talk, bare_talk.key, at) for at in (a, b)] == [401, 401]

    await until(is_refused, seconds=5)
    assert [await _calls(bare_talk, minted["key"], at) for at in (a, b)] == [200, 200]
    shown = (await bare_talk.gateway.admin.get(f"/tenants/{bare_talk.slug}/keys/{minted['id']}")).json()
    assert (shown["state"], shown["old_secret_until"]) == ("active", None)
