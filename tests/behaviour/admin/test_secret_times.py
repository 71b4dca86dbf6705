"""The time of the newest secret, for every kind with one, and its age in tables."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.cli.kinds.output import render_list
from gateway.domain.members.secret import SecretStatus
from gateway.kinds.index import KINDS
from gateway.kinds.kind import Kind
from gateway.kinds.members import secret_members, status_of
from tests.support.gateway import RunningGateway
from tests.support.manifests import tenant_for_manifests

ROOT = "/tenants/acme"
WITH_SECRETS = [one for one in KINDS if one.generates or secret_members(one.of)]


@pytest.fixture
async def acme(gateway: RunningGateway) -> RunningGateway:
    """The gateway with one tenant."""
    await tenant_for_manifests(gateway)
    return gateway


@pytest.mark.parametrize("kind", WITH_SECRETS, ids=lambda one: one.name)
def test_every_kind_with_a_secret_shows_its_age(kind: Kind[Any]) -> None:
    """Ours: a kind that has a secret declares the time, and its table has the age (TEN-2)."""
    status = kind.status or status_of(kind.of)
    assert status is not None
    assert issubclass(status, SecretStatus)
    old = (datetime.now(UTC) - timedelta(days=41, hours=1)).isoformat()
    heading, row = str(render_list(kind, [{"id": "x", "name": "x", "status": {"secret_at": old}}])).splitlines()[:2]
    assert "SECRET AGE" in heading
    assert "41d" in row


async def _secret_at(acme: RunningGateway, place: str) -> datetime:
    return datetime.fromisoformat((await acme.admin.get(place)).json()["status"]["secret_at"])


@pytest.mark.parametrize("kind", [one for one in WITH_SECRETS if one.generates], ids=lambda one: one.name)
async def test_a_rotation_moves_the_time_and_a_change_does_not(acme: RunningGateway, kind: Kind[Any]) -> None:
    """Ours: the time is that of the newest generated secret, whatever else of the object changes (TEN-2)."""
    path = f"{ROOT}/{kind.plural}"
    made = (await acme.admin.post(path, json=dict(kind.example))).json()
    place = f"{path}/{made['id']}"
    first = await _secret_at(acme, place)
    assert first == datetime.fromisoformat(made["status"]["secret_at"])
    if kind.changed_example:
        assert (await acme.admin.patch(place, json=dict(kind.changed_example))).status_code == 200
    assert await _secret_at(acme, place) == first
    rotated = (await acme.admin.post(f"{place}/rotate")).json()
    assert datetime.fromisoformat(rotated["status"]["secret_at"]) == await _secret_at(acme, place) > first


async def test_a_given_secret_moves_the_time_and_a_kept_one_does_not(acme: RunningGateway) -> None:
    """Ours: a credential whose secret a change omits keeps the time; a client without a secret has none (TEN-2)."""
    members = {"place": "bearer", "value": "one", "origins": ["https://api.example.com"]}
    place = f"{ROOT}/credentials/vendor"
    await acme.admin.put(place, json=members)
    first = await _secret_at(acme, place)
    kept = await acme.admin.patch(place, json={"scopes": []})
    await acme.admin.put(place, json={**members, "value": None})
    assert (kept.status_code, await _secret_at(acme, place)) == (200, first)
    await acme.admin.patch(place, json={"value": "two"})
    assert await _secret_at(acme, place) > first
    public = {"name": "Public", "redirect_uris": ["https://reports.example/callback"]}
    made = await acme.admin.post(f"{ROOT}/clients", json=public)
    assert made.json()["status"]["secret_at"] is None
