"""Findings of the doctor about keys, egress, clocks, disk, versions and the policy."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from gateway.app.installation import describe_installation
from gateway.app.python.registrations import Registrations
from gateway.app.secrets import GatewayKeys
from gateway.catalog.doctor.environment_checks import (
    Installation,
    check_clock,
    check_default_policy,
    check_disk,
    check_egress,
    check_keys,
)
from gateway.catalog.doctor.store_checks import check_database, check_redis, check_versions
from gateway.domain.findings import Verdict
from gateway.domain.tenancy.policy import PROTECTING, read_decisions
from gateway.errors import DatabaseUnavailable, RedisUnavailable
from gateway.redis.diagnostics import RedisFacts
from gateway.settings import Settings
from gateway.store.database.diagnostics import DatabaseFacts

REDIS = RedisFacts(
    version="7.2.4",
    number=(7, 2),
    clock_skew_s=0.0,
    keeps_log=True,
    log_is_written=True,
    max_bytes=0,
    eviction="noeviction",
    is_replica=False,
)
DATABASE = DatabaseFacts(
    version="18.4",
    major=18,
    login="gateway_app",
    login_bypasses_isolation=False,
    is_standby=False,
    is_read_only=False,
    clock_skew_s=0.0,
    revision="0002",
    role=None,
    tables_without_rls=(),
    tables_not_forcing_rls=(),
    missing=(),
)
INSTALLATION = Installation(database_url="", redis_url="", data_dir=Path("kept-here"))


@pytest.mark.parametrize(
    ("skew", "status"),
    [(0.2, Verdict.OK), (-0.9, Verdict.OK), (2.0, Verdict.WARNING), (-2.0, Verdict.WARNING), (61.0, Verdict.FAILED)],
)
def test_clocks_that_differ_are_found(skew: float, status: Verdict) -> None:
    """Ours: keys expire and limits are counted by the same time everywhere."""
    assert check_clock(replace(DATABASE, clock_skew_s=skew), REDIS).status is status
    assert check_clock(DATABASE, replace(REDIS, clock_skew_s=skew)).status is status


def test_without_another_clock_nothing_is_claimed() -> None:
    """Ours: an unknown state is not reported as good."""
    assert check_clock(None, None).status is Verdict.WARNING


@pytest.mark.parametrize(
    "entry", ["127.0.0.1:8080", "localhost:80", "10.0.0.5:443", "[fd00::5]:8080", "billing.internal:8443", "[::1]:1"]
)
def test_a_private_upstream_for_all_tenants_is_reported(entry: str) -> None:
    """Ours: the egress list opens doors for all tenants, so each is named."""
    finding = check_egress(["192.0.32.7:25", entry], 2)

    assert finding.status is Verdict.WARNING
    assert entry in finding.detail
    assert f"gateway tenant egress SLUG --allow {entry}" in finding.mend
    assert "192.0.32.7" not in finding.detail
    assert check_egress(["192.0.32.7:25", "[2606:4700::1]:22"], 2).status is Verdict.OK


@pytest.mark.parametrize(
    ("tenants", "status"), [(0, Verdict.OK), (1, Verdict.OK), (2, Verdict.WARNING), (None, Verdict.WARNING)]
)
def test_a_list_for_all_is_sound_with_one_tenant(tenants: int | None, status: Verdict) -> None:
    """Ours: GATEWAY_EGRESS_ALLOW is for one tenant; an unknown count is taken for several (ISO-5)."""
    finding = check_egress(["billing.internal:8443"], tenants)

    assert (finding.status, "billing.internal:8443" in finding.detail) == (status, True)


def test_the_origin_of_keys_is_reported_without_the_keys() -> None:
    """Ours: keys of our own making are for one machine; short ones can be guessed."""
    ours = replace(
        INSTALLATION,
        secret_key_lengths=[48],
        operator_key_lengths=[48],
        secret_keys_are_generated=True,
        operator_key_is_generated=True,
    )
    configured = replace(INSTALLATION, secret_key_lengths=[32, 40], operator_key_lengths=[32, 40])
    short = replace(INSTALLATION, secret_key_lengths=[40, 8], operator_key_lengths=[40, 9])

    assert {finding.status for finding in check_keys(ours)} == {Verdict.WARNING}
    assert all("kept-here" in finding.detail for finding in check_keys(ours))
    assert {finding.status for finding in check_keys(configured)} == {Verdict.OK}
    assert {finding.status for finding in check_keys(short)} == {Verdict.FAILED}
    assert [finding.detail for finding in check_keys(INSTALLATION)] == ["not set yet"] * 2


def test_a_disk_with_room_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: little room for embedded servers is a warning, almost none a failure; a missing folder has a parent."""
    rooms = [50 << 30, 500 << 20, 1 << 20]

    def usage(place: Path) -> SimpleNamespace:
        assert place == tmp_path
        return SimpleNamespace(free=rooms.pop(0))

    monkeypatch.setattr("shutil.disk_usage", usage)

    seen = [check_disk(tmp_path / "not" / "there", is_embedded=True).status for _ in range(3)]
    assert seen == [Verdict.OK, Verdict.WARNING, Verdict.FAILED]


@pytest.mark.parametrize(("free", "status"), [(64 << 20, Verdict.OK), (8 << 20, Verdict.WARNING), (0, Verdict.FAILED)])
def test_configured_servers_need_no_room_in_the_data_folder(
    free: int, status: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a replica in a container with a small tmpfs is sound; the data is at the configured servers (SRV-6)."""

    def usage(_: Path) -> SimpleNamespace:
        return SimpleNamespace(free=free)

    monkeypatch.setattr("shutil.disk_usage", usage)
    found = check_disk(tmp_path, is_embedded=False)

    assert found.status is status
    assert "configured servers" in found.detail


def test_the_data_folder_holds_data_where_no_server_is_configured() -> None:
    """Ours: the doctor reads from the settings which of the two it examines (SRV-6)."""
    keys = GatewayKeys(secret_keys=(), operator_key="", operator_key_is_new=False)
    urls = {"database_url": "postgresql://x/y", "redis_url": "redis://x"}
    for given, is_embedded in ({}, True), (urls, False):
        settings = Settings.model_validate(given)
        assert describe_installation(settings, keys, code=Registrations(), **urls).is_embedded is is_embedded


def test_an_old_redis_or_a_replica_is_found() -> None:
    """Ours: commands of the scripts came with Redis 6.2, and a replica takes no writes."""
    for facts in (replace(REDIS, version="6.0.16", number=(6, 0)), replace(REDIS, is_replica=True)):
        [first, *_] = check_redis(facts)
        assert (first.check, first.status) == ("redis", Verdict.FAILED)
    broken = {finding.check: finding.status for finding in check_redis(replace(REDIS, log_is_written=False))}
    assert broken["redis_persistence"] is Verdict.FAILED


def test_an_old_postgres_is_a_warning() -> None:
    """Ours: an untried check is reported."""
    assert check_versions(replace(DATABASE, major=15, version="15.9"), REDIS).status is Verdict.WARNING
    assert "Redis 7.2.4" in check_versions(DATABASE, REDIS).detail


def test_a_part_that_is_away_is_one_finding() -> None:
    """Ours: one cause is reported once."""
    assert [finding.check for finding in check_database(DatabaseUnavailable("away"))] == ["database"]
    assert [finding.check for finding in check_redis(RedisUnavailable("away"))] == ["redis"]


def test_a_database_without_our_role_is_to_be_migrated() -> None:
    """Ours: the remedy is one command."""
    found = {finding.check: finding for finding in check_database(DATABASE)}

    assert found["role"].status is found["grants"].status is Verdict.FAILED
    assert "gateway migrate" in found["role"].mend


def test_the_policy_of_new_tenants_is_reported() -> None:
    """Ours: an installation whose new tenants are less protected than by default is reported (SAF-2)."""
    kept, weaker = check_default_policy(PROTECTING), check_default_policy(read_decisions(["dangerous=confirm"]))

    assert (kept.status, weaker.status) == (Verdict.OK, Verdict.WARNING)
    assert kept.detail == "new tenants get safe allow, moderate confirm, dangerous approve"
    assert "weaker than the default for dangerous calls" in weaker.detail
