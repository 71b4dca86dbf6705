"""Receivers of a changed list: exactly the connections of the tenants and profiles whose list it is."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tests.behaviour.updates.conftest import Era, Following, Notes, eras
from tests.support.primitives import add, static_tool, text_prompt, text_resource
from tests.support.replicas import until

PROFILES = ("left", "right")
FENCE = "note://fence"
"""A resource that every profile shows: its notification comes after all earlier ones."""

Place = tuple[str, str]


def _primitives(profile: str, name: str) -> Mapping[str, dict[str, Any]]:
    """One of each family that this profile selects."""
    return {
        "tools": static_tool(f"{profile}_{name}"),
        "resources": text_resource(f"note://{profile}_{name}"),
        "prompts": text_prompt(f"{profile}_{name}"),
    }


@dataclass(frozen=True, slots=True)
class House:
    """Two tenants with two profiles each, and a client at each of the four."""

    tenants: Mapping[str, Notes]
    clients: Mapping[Place, Following]

    async def notify(self, *affected: Place, method: str) -> None:
        """The listed clients are notified once, and no other, before all of them receive the fence."""
        for place in affected:
            assert await self.clients[place].next() == method
        for notes in self.tenants.values():
            await notes.touch(FENCE)
        for place, client in self.clients.items():
            assert await client.next() == f"resources/updated {FENCE}", place


async def _open(stack: AsyncExitStack, notes: Notes, era: Era) -> House:
    other = replace(notes, slug=f"{notes.slug}-other")
    await notes.gateway.create_tenant(other.slug)
    other = replace(other, key=await notes.gateway.create_key(other.slug))
    tenants, clients = {"one": notes, "two": other}, dict[Place, Following]()
    for name, tenant in tenants.items():
        await add(notes.gateway, tenant.slug, "resources", text_resource(FENCE))
        for profile in PROFILES:
            rules = {"include": [{"names": [f"{profile}_*", f"note://{profile}_*", FENCE]}]}
            await add(notes.gateway, tenant.slug, "profiles", {"name": profile, **rules})
            for nouns, body in _primitives(profile, "first").items():
                await add(notes.gateway, tenant.slug, nouns, body)
        for profile in PROFILES:
            await until(partial(_is_shown, tenant, profile), seconds=30)
            following = tenant.following(era, FENCE, profile=profile)
            clients[name, profile] = await stack.enter_async_context(following)
    return House(tenants, clients)


async def _is_shown(notes: Notes, profile: str) -> bool:
    """True if the replica of the clients knows the last stored change."""
    at = notes.replicas.b.gateway
    listed = (await at.rpc(f"{notes.slug}/{profile}", notes.key, "prompts/list")).json()
    return [each["name"] for each in listed.get("result", {}).get("prompts", ())] == [f"{profile}_first"]


@eras
async def test_a_changed_list_is_notified_where_it_is_shown(notes: Notes, era: Era) -> None:
    """Ours: neither another tenant nor another profile receives it, for each kind of list (CAP-2, TEN-5)."""
    async with AsyncExitStack() as stack:
        house = await _open(stack, notes, era)
        one = house.tenants["one"]
        for nouns, body in _primitives("left", "second").items():
            await add(notes.gateway, one.slug, nouns, body)
            await house.notify(("one", "left"), method=f"{nouns}/list_changed")
        for nouns, body in _primitives("right", "second").items():
            await add(notes.gateway, house.tenants["two"].slug, nouns, body)
            await house.notify(("two", "right"), method=f"{nouns}/list_changed")
        await add(notes.gateway, one.slug, "tools", static_tool("nobody"))  # no profile shows it
        await house.notify(method="")
        rules = {
            "include": [{"names": ["left_*", "note://left_*", FENCE]}, {"names": ["right_*"], "families": ["tool"]}]
        }
        path = f"/tenants/{one.slug}/profiles/left"
        (await notes.gateway.admin.put(path, json=rules)).raise_for_status()
        await house.notify(("one", "left"), method="tools/list_changed")
        (await notes.gateway.admin.delete(f"/tenants/{house.tenants['two'].slug}")).raise_for_status()
