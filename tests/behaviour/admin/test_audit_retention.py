"""Retention of audit trails over REST, in the background and from the command line."""

import io
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import pytest

from gateway.cli.audit_verifier import ExportVerifier
from tests.support.documents import many
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.servers import TestDatabase, TestServers
from tests.support.upstream import RecordingUpstream

_RETENTION = "/tenants/acme/audit/retention"


@contextmanager
def _clock_behind(days: int) -> Generator[None]:
    """The clock of the gateway, so many days behind the one of the database."""
    now = time.time_ns
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: now() - days * 86_400 * 10**9)
        yield


@pytest.fixture
def database(servers: TestServers) -> Iterator[TestDatabase]:
    """A database of its own: a second gateway on it might take the job of the cut."""
    with servers.database() as created:
        yield created


@pytest.fixture
async def acme(
    database: TestDatabase, servers: TestServers, upstream: RecordingUpstream
) -> AsyncGenerator[RunningGateway]:
    """Two tenants with old changes and calls, at a gateway that permits a retention of ten days."""
    async with running_gateway(database.app_url, servers.empty_redis(), audit_retention_min_days=10) as gateway:
        with _clock_behind(40):
            for slug in ("acme", "other"):
                await gateway.create_tenant(slug)
                await gateway.import_document(slug, many(upstream.url, 1))
                key = await gateway.create_key(slug)
                for _ in range(3):
                    (
                        await gateway.rpc(slug, key, "tools/call", {"name": "op_0000", "arguments": {}})
                    ).raise_for_status()
        yield gateway


async def _status(gateway: RunningGateway, query: str = "", **more: Any) -> dict[str, Any]:
    answer = await gateway.admin.get(f"{_RETENTION}{query}", **more)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def test_old_entries_are_removed_in_the_background(acme: RunningGateway) -> None:
    """Ours: a dry run counts, a retention removes as many, and the rest is verified and has a record of the cut
    (SAF-8).
    """
    assert (await _status(acme))["status"]["removable"]["entries"] == 0
    tried = await _status(acme, "?days=10")
    assert (tried["days"], tried["status"]["removed"]) == (None, 0)
    tried = tried["status"]
    assert tried["removable"]["entries"] >= 5

    set_ = await acme.admin.put(_RETENTION, json={"days": 10})
    assert set_.status_code == 200, set_.text
    with anyio.fail_after(30):
        while (now := (await _status(acme))["status"])["removed"] == 0:  # noqa: ASYNC110  # in another process
            await anyio.sleep(0.05)  # the job is begun once a second

    verified = (await acme.admin.get("/tenants/acme/audit/verify")).json()
    entries = (await acme.admin.get("/tenants/acme/audit?limit=200")).json()["items"]
    [cut] = [entry for entry in entries if entry["action"] == "audit.cut"]
    assert (now["removable"]["entries"], now["fault"], now["cut_at"] is not None) == (0, None, True)
    assert (verified["ok"], verified["removed"]) == (True, now["removed"])
    assert now["removed"] in {tried["removable"]["entries"], tried["removable"]["entries"] + 1}  # the change of it
    assert (cut["principal"], cut["detail"]["entries"]) == ("gateway", now["removed"])
    assert "audit_retention.update" in {entry["action"] for entry in entries}
    keys = (await acme.admin.get("/tenants/acme/audit/export-keys")).json()["keys"]
    text = (await acme.admin.get("/tenants/acme/audit/export")).content
    assert ExportVerifier([bytes.fromhex(key["public"]) for key in keys]).verify(io.BytesIO(text)).faults == []
    assert (await acme.admin.get("/tenants/other/audit/verify")).json()["removed"] == 0


async def test_a_retention_has_a_minimum(acme: RunningGateway) -> None:
    """Ours: neither an admin nor a wrong value shortens the trail below the operator's minimum (SAF-8)."""
    for days in (0, 9, -1, 36_501, "10", 10.5, True):
        refused = await acme.admin.put(_RETENTION, json={"days": days})
        assert refused.status_code == 400, (days, refused.text)
        assert refused.json()["errors"][0]["pointer"] == "/days"
    assert (await acme.admin.get(f"{_RETENTION}?days=0")).status_code == 400
    shorter, shortest = await _status(acme, "?days=1"), await _status(acme, "?days=10")
    assert shorter["status"]["removable"]["entries"] == shortest["status"]["removable"]["entries"]


async def test_admins_and_the_operator_set_a_retention(acme: RunningGateway) -> None:
    """Ours: auditors read it, admins set it, with the version they have read; others learn nothing (TEN-1)."""
    statuses: dict[str, list[int]] = {}
    for name, slug, scope in (
        ("auditor", "acme", "audit"),
        ("admin", "acme", "admin"),
        ("client", "acme", "mcp"),
        ("stranger", "other", "admin"),
    ):
        headers = {"authorization": f"Bearer {await acme.create_key(slug, scope)}"}
        read = await acme.admin.get(_RETENTION, headers=headers)
        wrote = await acme.admin.put(_RETENTION, json={"days": None}, headers=headers)
        statuses[name] = [read.status_code, wrote.status_code]

    assert statuses == {"auditor": [200, 403], "admin": [200, 200], "client": [403, 403], "stranger": [404, 404]}
    tag = (await acme.admin.get(_RETENTION)).headers["etag"]
    assert (await acme.admin.put(_RETENTION, json={"days": 99}, headers={"if-match": tag})).status_code == 200
    assert (await acme.admin.put(_RETENTION, json={"days": 98}, headers={"if-match": tag})).status_code == 412
    assert (await _status(acme))["days"] == 99
