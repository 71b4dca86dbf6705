"""Snapshots of everything a tenant has: loaded whole, at one moment, again whenever data or code moved."""

import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import pytest

from gateway.catalog.kinds.primitives import TOOLS
from gateway.catalog.kinds.profiles import PROFILES
from gateway.catalog.kinds.singletons import POLICY
from gateway.catalog.snapshots.python_primitives import PythonPrimitive
from gateway.catalog.snapshots.snapshots import Snapshots
from gateway.catalog.sources import imports
from gateway.catalog.sources.drafts import SourceDraft
from gateway.catalog.tenants import create_tenant
from gateway.catalog.transaction import Author
from gateway.domain.identifiers import TenantId
from gateway.domain.primitives import Family
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.principals import Operator
from gateway.domain.tenancy.profiles import Profile
from gateway.domain.tools import PrimitiveOrigin
from gateway.errors import NotFound
from gateway.store import tenants
from gateway.store.engine import Db
from gateway.store.kinds.tenants import TENANTS
from tests.integration.catalog.conftest import Changes
from tests.support.documents import pets
from tests.support.ids import new_profile_id
from tests.support.own_primitives import create_own
from tests.support.primitives import static_tool, template, text_prompt, text_resource

BY = Author(caller=Operator(), correlation_id="test")


class _Code:
    """Registrations that a test can change."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.generation = 0

    def register(self, name: str) -> None:
        self.names.append(name)
        self.generation += 1

    def primitives(self) -> list[PythonPrimitive]:
        return [
            PythonPrimitive(family=Family.TOOL, name=name, definition=b"{}", safety=Safety.SAFE, safety_reasons=())
            for name in self.names
        ]


async def _create(changes: Changes, family: Family, body: dict[str, Any]) -> None:
    await create_own(changes.tenant.id, changes.catalog, family, body, by=BY)


async def test_a_snapshot_holds_all_that_clients_can_have(changes: Changes) -> None:
    """Ours: tools of every origin, resources, templates, prompts, profiles and the policy's origins (PRG-3, CAP-1)."""
    tenant, catalog = changes.tenant.id, changes.catalog
    code = _Code()
    code.register("coded")
    await imports.import_source(tenant, catalog, SourceDraft(name="pets", document=pets("https://a.example")), by=BY)
    await _create(changes, Family.TOOL, static_tool("own"))
    await _create(changes, Family.TOOL, {**static_tool("off"), "enabled": False})
    await _create(changes, Family.RESOURCE, text_resource("docs://a"))
    handler = {"kind": "template", "text": "x", "mimeType": "text/plain"}
    await _create(changes, Family.TEMPLATE, template("docs://rows/{id}", handler))
    await _create(changes, Family.PROMPT, text_prompt("greet"))
    await PROFILES.create(tenant, catalog, Profile(id=new_profile_id(), name="small"), by=BY)
    await POLICY.change(tenant, catalog, lambda policy: replace(policy, http_origins=("https://A.example/",)), by=BY)

    snapshot = await Snapshots(catalog.store, code=code).latest(tenant)

    origins = {tool.name: tool.origin for tool in snapshot.tools}
    assert (origins["coded"], origins["own"], origins["list_pets"]) == (
        PrimitiveOrigin.CODE,
        PrimitiveOrigin.CUSTOM,
        PrimitiveOrigin.SOURCE,
    )
    assert "off" not in origins
    assert [tool.name for tool in snapshot.tools] == sorted(snapshot.by_name)
    assert [one.name for one in snapshot.resources] == ["docs://a"]
    assert [one.name for one in snapshot.templates] == ["docs://rows/{id}"]
    assert [one.name for one in snapshot.prompts] == ["greet"]
    assert (snapshot.slug, list(snapshot.profiles)) == ("acme", ["small"])
    assert snapshot.http_origins == frozenset({"https://a.example"})
    assert snapshot.by_name["coded"].handler == b""
    found = snapshot.operation("pets", "list_pets")
    assert found is snapshot.operation("pets", "GET /pets") is snapshot.by_name["list_pets"]
    assert snapshot.operation("zoo", "list_pets") is snapshot.operation("pets", "none") is None


async def test_code_that_moved_makes_a_newer_snapshot(changes: Changes) -> None:
    """Ours: code that is registered while the gateway serves is seen at the next check, without a change of data
    (PRG-1).
    """
    code = _Code()
    snapshots = Snapshots(changes.catalog.store, code=code)
    first = await snapshots.latest(changes.tenant.id)
    assert await snapshots.latest(changes.tenant.id) is first
    code.register("coded")
    second = await snapshots.latest(changes.tenant.id)
    assert (second.revision, [tool.name for tool in second.tools]) == (first.revision, ["coded"])
    assert second.order > first.order
    assert await snapshots.latest(changes.tenant.id) is second


@pytest.mark.parametrize("enabled", [True, False])
async def test_a_name_of_the_tenants_own_hides_code(changes: Changes, enabled: bool) -> None:
    """Ours: at a clash the tenant's own is what clients have, or nothing while it is switched off (PRG-4)."""
    code = _Code()
    await _create(changes, Family.TOOL, {**static_tool("same"), "enabled": enabled})
    code.register("same")
    snapshots = Snapshots(changes.catalog.store, code=code)
    snapshot = await snapshots.latest(changes.tenant.id)
    assert [tool.origin for tool in snapshot.tools] == [PrimitiveOrigin.CUSTOM] * enabled
    await TOOLS.remove(changes.tenant.id, changes.catalog, "same", by=BY)
    snapshots.note(changes.tenant.id, snapshot.revision + 1)
    assert [tool.origin for tool in (await snapshots.latest(changes.tenant.id)).tools] == [PrimitiveOrigin.CODE]


async def test_the_revisions_of_all_that_is_shown_are_one_question(
    changes: Changes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a replica that shows many tenants asks once every few seconds for all of them, and misses no change."""
    catalog = changes.catalog
    others = [await create_tenant(catalog, f"tenant-{number}", "Tenant", by=BY) for number in range(3)]
    ids = [changes.tenant.id, *(other.id for other in others)]
    snapshots = Snapshots(catalog.store)
    _pass_time(monkeypatch, 0)
    first = [await snapshots.latest(tenant) for tenant in ids]
    asked: list[set[TenantId]] = []
    revisions = tenants.revisions

    async def counted(db: Db, wanted: Collection[TenantId]) -> Mapping[TenantId, int]:
        asked.append(set(wanted))
        return await revisions(db, wanted)

    monkeypatch.setattr("gateway.catalog.snapshots.snapshots.tenants.revisions", counted)
    _pass_time(monkeypatch, 5.1)
    assert [await snapshots.latest(tenant) for tenant in ids] == first
    assert asked == [set(ids)]

    await _create(changes, Family.TOOL, static_tool("own"))  # no event reports it
    snapshots.invalidate_all()
    assert await snapshots.latest(ids[1]) is first[1]
    assert asked[1:] == [set(ids)]
    assert [tool.name for tool in (await snapshots.latest(ids[0])).tools] == ["own"]
    assert len(asked) == 2, "what is known to be old is loaded at once"

    snapshots.forget(ids[0])
    async with catalog.store.transaction(ids[2]) as db:
        assert await TENANTS.remove(ids[2], db, ids[2])
    _pass_time(monkeypatch, 5.1)
    assert await snapshots.latest(ids[3]) is first[3]
    with pytest.raises(NotFound):
        await snapshots.latest(ids[2])


def _pass_time(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    now = time.monotonic() + seconds
    monkeypatch.setattr("gateway.catalog.snapshots.snapshots.time.monotonic", lambda: now)
