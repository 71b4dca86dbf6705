"""Edits of the database are detected, over REST and from the outside."""

from typing import Any

import pytest

from gateway.store.database.connection import connect_owner
from tests.support.documents import many
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.servers import TestDatabase, execute
from tests.support.upstream import RecordingUpstream, recording_upstream

_CALLS = "writer <> 'catalog'"
_VERIFY = "/tenants/acme/audit/verify"


@pytest.fixture
async def acme(gateway: RunningGateway, upstream: RecordingUpstream) -> RunningGateway:
    """A tenant with a trail of four changes and three calls, beside an untouched one."""
    for slug in ("acme", "other"):
        await gateway.create_tenant(slug)
        await gateway.import_document(slug, many(upstream.url, 1))
        await gateway.create_key(slug)
        key = await gateway.create_key(slug)
        for _ in range(3):
            answer = await gateway.rpc(slug, key, "tools/call", {"name": "op_0000", "arguments": {}})
            assert answer.status_code == 200, answer.text
    return gateway


async def _verified(gateway: RunningGateway, path: str = _VERIFY) -> dict[str, Any]:
    answer = await gateway.admin.get(path)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


async def test_an_untouched_trail_is_whole(acme: RunningGateway) -> None:
    """Ours: every entry is counted, and each follows from the one before (SAF-4)."""
    result = await _verified(acme)

    listed = (await acme.admin.get("/tenants/acme/audit?limit=200")).json()["items"]
    catalog, calls = (
        next(chain for chain in result["writers"] if (chain["writer"] == "catalog") is is_catalog)
        for is_catalog in (True, False)
    )
    assert result["ok"] is True
    assert result["entries"] == len(listed)
    assert (catalog["entries"], catalog["first"], catalog["last"], catalog["ok"]) == (4, 1, 4, True)
    assert (calls["first"], calls["last"], calls["fault"], len(calls["head"])) == (1, calls["entries"], None, 64)


_EDITS = (
    ("update audit_entries set principal = 'key:nobody'", "writer = 'catalog' and seq = 2", "changed", 2),
    ("update audit_entries set detail = '{}'", "writer = 'catalog' and seq = 2", "changed", 2),
    ("update audit_entries set outcome = 'denied'", f"{_CALLS} and seq = 3", "changed", 3),
    ("update audit_entries set at = 'infinity'", f"{_CALLS} and seq = 3", "changed", 3),
    ("update audit_entries set at = '4000-01-01 BC'", f"{_CALLS} and seq = 3", "changed", 3),
    ("delete from audit_entries", "writer = 'catalog' and seq = 3", "missing", 3),
    ("delete from audit_entries", "writer = 'catalog' and seq = 1", "missing", 1),
    ("delete from audit_entries", f"{_CALLS} and seq = 1", "missing", 1),
    ("delete from audit_entries", "writer = 'catalog' and seq = 4", "shortened", 4),
    ("delete from audit_entries", "writer = 'catalog'", "shortened", 4),
)


async def test_an_edit_a_deletion_or_a_gap_is_found(acme: RunningGateway, database: TestDatabase) -> None:
    """Ours: a writer to the database without the keys is detected, in the tenant concerned (SAF-4)."""
    of_acme = "tenant_id = (select id from tenants where slug = 'acme')"
    connection = await connect_owner(database.superuser_url)
    try:
        await connection.execute(f"create temp table kept as select * from audit_entries where {of_acme}")
        for edit, where, kind, number in _EDITS:
            await connection.execute(f"{edit} where {of_acme} and {where}")

            result = await _verified(acme)

            faulty = [chain for chain in result["writers"] if not chain["ok"]]
            assert result["ok"] is False
            assert [(chain["fault"]["kind"], chain["fault"]["number"]) for chain in faulty] == [(kind, number)], edit
            assert (await _verified(acme, "/tenants/other/audit/verify"))["ok"] is True
            await connection.execute(f"delete from audit_entries where {of_acme}")
            await connection.execute("insert into audit_entries select * from kept")
            assert (await _verified(acme))["ok"] is True
    finally:
        await connection.close()


async def test_an_entry_that_was_put_in_is_found(acme: RunningGateway, database: TestDatabase) -> None:
    """Ours: no caller gets an entry of a call that it did not make (SAF-4)."""
    await execute(
        database.superuser_url,
        "insert into audit_entries select tenant_id, 'aud_x', 'forged', 1, at, kind, principal, subject, action, "
        "target, outcome, correlation_id, digest, status, duration_us, result_bytes, detail, mac "
        f"from audit_entries where {_CALLS} and seq = 1 and tenant_id = (select id from tenants where slug = 'acme')",
    )

    result = await _verified(acme)

    assert [chain["writer"] for chain in result["writers"] if not chain["ok"]] == ["forged"]


async def test_a_trail_of_several_parts_is_verified_to_its_end(
    acme: RunningGateway, database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a long trail is read in parts, and a fault in the last one counts (SAF-4)."""
    monkeypatch.setattr("gateway.catalog.audit.PART", 4)
    key = await acme.create_key("acme")
    for _ in range(7):
        (await acme.rpc("acme", key, "tools/call", {"name": "op_0000", "arguments": {}})).raise_for_status()
    whole = await _verified(acme)
    last = max(chain["last"] for chain in whole["writers"])
    await execute(
        database.superuser_url,
        f"update audit_entries set target = 'other' where {_CALLS} and seq = {last} "
        "and tenant_id = (select id from tenants where slug = 'acme')",
    )

    result = await _verified(acme)

    assert whole["ok"] is True
    assert whole["entries"] >= 12
    assert [chain["fault"]["number"] for chain in result["writers"] if chain["fault"]] == [last]


async def test_calls_that_were_cut_off_are_missed(database: TestDatabase, redis_url: str) -> None:
    """Ours: the last entries of a replica are signed when it ends, and no earlier result is needed (SAF-4)."""
    async with recording_upstream() as upstream:
        allowed = [upstream.authority]
        async with running_gateway(database.app_url, redis_url, egress_allow=allowed) as first:
            await first.create_tenant("acme")
            await first.import_document("acme", many(upstream.url, 1))
            key = await first.create_key("acme")
            for _ in range(3):
                (await first.rpc("acme", key, "tools/call", {"name": "op_0000", "arguments": {}})).raise_for_status()
    async with running_gateway(database.app_url, redis_url) as gateway:
        whole = await _verified(gateway)
        await execute(database.superuser_url, f"delete from audit_entries where {_CALLS} and seq >= 3")
        cut = await _verified(gateway)

    signers = [chain for chain in whole["writers"] if chain["writer"].startswith("heads:")]
    assert whole["ok"] is True
    assert [(chain["entries"], chain["ok"]) for chain in signers] == [(2, True)]
    assert whole["entries"] == sum(chain["entries"] for chain in whole["writers"]) - 2
    assert cut["ok"] is False
    assert [chain["fault"]["kind"] for chain in cut["writers"] if not chain["ok"]] == ["shortened"]


async def test_admins_auditors_and_the_operator_verify(acme: RunningGateway) -> None:
    """Ours: the tenant's admins and auditors and the operator; no other caller learns that the tenant exists
    (TEN-1).
    """
    statuses: dict[str, int] = {}
    for name, slug, scope in (
        ("auditor", "acme", "audit"),
        ("admin", "acme", "admin"),
        ("client", "acme", "mcp"),
        ("stranger", "other", "audit"),
    ):
        key = await acme.create_key(slug, scope)
        answer = await acme.admin.get(_VERIFY, headers={"authorization": f"Bearer {key}"})
        statuses[name] = answer.status_code

    assert statuses == {"auditor": 200, "admin": 200, "client": 403, "stranger": 404}
