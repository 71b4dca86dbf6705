"""Exports of audit trails over REST and from the command line."""

import io
from typing import Any

import pytest

from gateway.cli.audit_verifier import ExportVerifier, Verified
from tests.support.documents import many
from tests.support.gateway import RunningGateway
from tests.support.upstream import RecordingUpstream

_EXPORT = "/tenants/acme/audit/export"


@pytest.fixture
async def acme(gateway: RunningGateway, upstream: RecordingUpstream) -> RunningGateway:
    """A tenant with a trail of changes and calls, beside another one."""
    for slug in ("acme", "other"):
        await gateway.create_tenant(slug)
        await gateway.import_document(slug, many(upstream.url, 1))
        key = await gateway.create_key(slug)
        for _ in range(3):
            (await gateway.rpc(slug, key, "tools/call", {"name": "op_0000", "arguments": {}})).raise_for_status()
    return gateway


async def _verified(gateway: RunningGateway, text: bytes, slug: str = "acme") -> Verified:
    keys: dict[str, Any] = (await gateway.admin.get(f"/tenants/{slug}/audit/export-keys")).json()
    public = [bytes.fromhex(key["public"]) for key in keys["keys"]]
    return ExportVerifier(public, tenant=keys["tenant"]).verify(io.BytesIO(text))


async def test_an_export_is_verified_with_the_published_key(acme: RunningGateway) -> None:
    """Ours: the export over REST is the trail, and another tenant's key does not fit it (SAF-8)."""
    answer = await acme.admin.get(_EXPORT)
    listed = (await acme.admin.get("/tenants/acme/audit?limit=200")).json()["items"]

    found = await _verified(acme, answer.content)

    assert answer.headers["content-type"] == "application/jsonl"
    assert (found.faults, found.entries) == ([], len(listed))
    assert (await _verified(acme, answer.content, "other")).is_whole is False


async def test_an_export_of_several_parts_is_whole(acme: RunningGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a long trail is exported part by part, each sealed (SAF-8)."""
    monkeypatch.setattr("gateway.catalog.audit_export.PART", 4)
    key = await acme.create_key("acme")
    for _ in range(6):
        await acme.rpc("acme", key, "tools/call", {"name": "op_0000", "arguments": {}})

    found = await _verified(acme, (await acme.admin.get(_EXPORT)).content)
    calls = await _verified(acme, (await acme.admin.get(_EXPORT, params={"kind": "call"})).content)

    assert (found.faults, calls.faults) == ([], [])
    assert found.entries > calls.entries >= 9
    assert found.seals >= 3


async def test_admins_auditors_and_the_operator_export(acme: RunningGateway) -> None:
    """Ours: the tenant's admins and auditors and the operator; other tenants do not learn that it exists (TEN-1)."""
    statuses: dict[str, list[int]] = {}
    for name, slug, scope in (
        ("auditor", "acme", "audit"),
        ("admin", "acme", "admin"),
        ("client", "acme", "mcp"),
        ("stranger", "other", "audit"),
    ):
        headers = {"authorization": f"Bearer {await acme.create_key(slug, scope)}"}
        paths = (_EXPORT, "/tenants/acme/audit/export-keys")
        statuses[name] = [(await acme.admin.get(path, headers=headers)).status_code for path in paths]

    assert statuses == {"auditor": [200, 200], "admin": [200, 200], "client": [403, 403], "stranger": [404, 404]}


async def test_an_export_that_is_refused_is_a_problem(acme: RunningGateway) -> None:
    """Ours: a wrong filter is refused before the first line; HEAD reads nothing (ADM-1)."""
    refused = await acme.admin.get(_EXPORT, params={"since": "yesterday"})
    unknown = await acme.admin.get(_EXPORT, params={"limit": "5"})
    head = await acme.admin.head(_EXPORT)

    assert (refused.status_code, unknown.status_code) == (400, 400)
    assert refused.headers["content-type"] == "application/problem+json"
    assert (head.status_code, head.content) == (200, b"")


async def test_a_client_that_goes_away_leaves_its_place(acme: RunningGateway) -> None:
    """Ours: an export that its client gives up frees its place for the next one (ISO-3)."""
    for _ in range(8):  # twice as many as there are places
        async with acme.admin.stream("GET", _EXPORT) as answer:
            assert answer.status_code == 200

    found = await _verified(acme, (await acme.admin.get(_EXPORT)).content)

    assert found.is_whole
