"""The numbers of a running gateway, and whether the dashboard and the alerts ask for what is there."""

import json
import re
import subprocess
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from gateway.telemetry.metrics import Metrics
from tests.deploy.compose import ROOT
from tests.deploy.programs import find_program
from tests.deploy.sockets import free_port
from tests.support.documents import pets
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.replicas import until
from tests.support.serving import http_client
from tests.support.upstream import RecordingUpstream, recording_upstream

METRICS_KEY = "metrics-key-of-the-tests-0123456789"
PATIENCE_S = 30

_NAME = re.compile(r"\b(?:gateway|process)_[a-z_]+\b")
_OF_THE_PROCESS = {"GatewayMemory", "GatewayDescriptors"}
"""These tests examine the whole process, in which all tests run here."""
_QUIET = {"Refused by limits"}
"""Panels of what does not happen here."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A gateway that has served calls, and its numbers."""

    gateway: RunningGateway
    upstream: RecordingUpstream
    key: str

    async def families(self) -> dict[str, Metric]:
        """Its page, read by Prometheus' own library."""
        page = await self.gateway.http.get("/metrics", headers={"authorization": f"Bearer {METRICS_KEY}"})
        assert page.status_code == 200
        return {family.name: family for family in text_string_to_metric_families(page.text)}

    async def value(self, name: str, **labels: str) -> float:
        """One number; 0 where there is no such series."""
        samples = [sample for family in (await self.families()).values() for sample in family.samples]
        return sum(one.value for one in samples if one.name == name and labels.items() <= one.labels.items())


@pytest.fixture
async def measured(database_url: str, redis_url: str) -> AsyncGenerator[Measured]:
    """A gateway with calls that went well and one that did not."""
    async with recording_upstream() as upstream:
        options: dict[str, Any] = {"metrics_key": METRICS_KEY, "egress_allow": [upstream.authority]}
        async with running_gateway(database_url, redis_url, **options) as gateway:
            await gateway.create_tenant("acme")
            await gateway.import_document("acme", pets(upstream.url))
            key = await gateway.create_key("acme")
            measured = Measured(gateway, upstream, key)
            await _call(measured, times=3)
            upstream.status = 500
            await _call(measured)
            upstream.status = 200
            yield measured


async def _call(measured: Measured, *, times: int = 1) -> None:
    for _ in range(times):
        params = {"name": "get_pet", "arguments": {"id": 7}}
        (await measured.gateway.rpc("acme", measured.key, "tools/call", params)).raise_for_status()


async def test_calls_are_counted_by_tenant_source_and_outcome(measured: Measured) -> None:
    """Ours: caller and outcome of each call (SRV-6)."""
    assert await measured.value("gateway_calls_total", tenant="acme", source="api", outcome="ok") == 3
    assert await measured.value("gateway_calls_total", tenant="acme", source="api", outcome="upstream_error") == 1


async def test_the_parts_of_a_calls_time_are_measured_apart(measured: Measured) -> None:
    """Ours: the time of the gateway itself, beside its waits (SRV-6)."""
    for part in ("gateway", "upstream"):
        assert await measured.value("gateway_call_seconds_count", part=part) == 4
        assert await measured.value("gateway_call_seconds_sum", part=part) > 0


async def test_the_trail_the_catalog_and_the_bus_are_measured(measured: Measured) -> None:
    """Ours: each dependency of a call has a metric (SRV-6)."""
    assert await measured.value("gateway_audit_entries_total") >= 4
    assert await measured.value("gateway_audit_waiting") == 0
    assert await measured.value("gateway_snapshots_loaded_total") >= 1
    assert await measured.value("gateway_events_live") == 1

    async def has_lag() -> bool:
        return "gateway_event_lag_seconds" in {
            sample.name for family in (await measured.families()).values() for sample in family.samples
        }

    await until(has_lag, seconds=PATIENCE_S)


async def test_open_streams_and_sessions_are_counted_while_they_are_open(measured: Measured) -> None:
    """Ours: open resources are counted (SRV-6)."""
    async with measured.gateway.client("acme", measured.key, "legacy") as client:
        await client.list_tools()
        assert await measured.value("gateway_sessions_served") == 1

    async def is_closed() -> bool:
        return await measured.value("gateway_streams_open") == 0

    await until(is_closed, seconds=PATIENCE_S)  # the session's own stream
    async with (
        measured.gateway.client("acme", measured.key, "2026-07-28") as client,
        client.listen(tools_list_changed=True),
    ):
        assert await measured.value("gateway_streams_open") == 1
        assert await measured.value("gateway_http_requests_open") >= 2

    await until(is_closed, seconds=PATIENCE_S)


async def test_only_the_metrics_key_and_the_operator_read_them(measured: Measured) -> None:
    """Ours: numbers name tenants; no tenant's key shows them, and the metrics key opens nothing else (TEN-5)."""
    http, admin = measured.gateway.http, measured.gateway.admin
    tenants = {"authorization": f"Bearer {measured.key}"}
    own = {"authorization": f"Bearer {METRICS_KEY}"}

    assert (await http.get("/metrics")).status_code == 401
    assert (await http.get("/metrics", headers=tenants)).status_code == 403
    assert (await http.get("/metrics", headers={"authorization": f"Bearer {METRICS_KEY}x"})).status_code == 401
    assert (await http.get("/metrics", headers={"authorization": admin.headers["authorization"]})).status_code == 200
    assert (await http.get("/admin/v1/tenants", headers=own)).status_code == 401
    assert (await http.post("/metrics", headers=own)).status_code == 405


def _dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "deploy/grafana/mcp-gateway.json").read_text())
    return found


def _panels() -> Iterator[tuple[str, str]]:
    for panel in _dashboard()["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def _alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def _filled(query: str) -> str:
    """The query as Grafana sends it."""
    return query.replace("$__rate_interval", "1m").replace("$tenant", ".*")


async def test_the_page_has_exactly_the_metrics_of_the_code(measured: Measured) -> None:
    """Ours: docs/metrics.md, which is made from the code, is what there is (SRV-6)."""
    named = {family.name.removesuffix("_total") for family in Metrics().families}

    assert set(await measured.families()) == named


async def test_every_queried_metric_is_on_the_page(measured: Measured) -> None:
    """Ours: every panel and alert queries a metric that exists (SRV-6)."""
    families = await measured.families()
    there = {sample.name for family in families.values() for sample in family.samples}
    there |= set(families) | {f"{name}_total" for name, family in families.items() if family.type == "counter"}
    asked = {name for query in [*(query for _, query in _panels())] for name in _NAME.findall(query)}
    asked |= {name for alert in _alerts() for name in _NAME.findall(alert["expr"])}

    assert asked - {"gateway_draining"} <= there
    assert len(asked) > 10


def test_every_alert_has_its_page_in_the_runbook() -> None:
    """Ours: the alert's name leads to its remedy."""
    runbook = (ROOT / "docs/operations.md").read_text()

    assert [alert["alert"] for alert in _alerts() if f"### {alert['alert']}\n" not in runbook] == []
    assert {alert["labels"]["severity"] for alert in _alerts()} == {"page", "ticket"}


async def test_prometheus_itself_answers_every_query(measured: Measured, tmp_path: Path) -> None:
    """Ours: the dashboard shows something, every alert can be evaluated (SRV-6)."""
    async with _prometheus(measured, tmp_path) as prometheus:

        async def answer(query: str) -> list[Any]:
            found = (await prometheus.get("/api/v1/query", params={"query": _filled(query)})).json()
            assert found["status"] == "success", (query, found)
            result: list[Any] = found["data"]["result"]
            return result

        async def has_rates() -> bool:
            await _call(measured)
            return bool(await answer("sum(rate(gateway_calls_total[1m])) > 0"))

        await until(has_rates, seconds=PATIENCE_S, pause=0.2)
        silent = {title for title, query in _panels() if not await answer(query)}

        async def is_healthy() -> bool:
            firing = {alert["alert"] for alert in _alerts() if await answer(alert["expr"])}
            return firing - _OF_THE_PROCESS <= {"GatewayUpstreamFails"}  # one call of a few failed

        await until(is_healthy, seconds=PATIENCE_S, pause=0.2)  # a scrape of a busy process may come late

    assert silent <= _QUIET


def test_promtool_finds_nothing_wrong_with_the_rules_and_the_scrape(tmp_path: Path) -> None:
    """Ours: Prometheus will load both files."""
    promtool = find_program("prometheus", "promtool")
    config = (ROOT / "deploy/prometheus/prometheus.yaml").read_text()
    key = tmp_path / "metrics_key"
    key.write_text(METRICS_KEY)
    (tmp_path / "prometheus.yaml").write_text(config.replace("/run/secrets/metrics_key", str(key)))
    (tmp_path / "alerts.yaml").write_text((ROOT / "deploy/prometheus/alerts.yaml").read_text())

    ended = subprocess.run(
        [promtool, "check", "config", "prometheus.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stderr


@asynccontextmanager
async def _prometheus(measured: Measured, folder: Path) -> AsyncGenerator[httpx.AsyncClient]:
    """A Prometheus that reads the gateway five times a second."""
    program = find_program("prometheus", "prometheus")
    target = measured.gateway.url.removeprefix("http://")
    job = {
        "job_name": "mcp-gateway",
        "scrape_interval": "200ms",
        "authorization": {"credentials": METRICS_KEY},
        "static_configs": [{"targets": [target]}],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump({"scrape_configs": [job]}))
    port = free_port()
    command = [program, f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/tsdb"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
    child = _launch(command, folder / "prometheus.log")
    try:
        async with http_client(base_url=f"http://127.0.0.1:{port}", timeout=30) as http:

            async def is_ready() -> bool:
                assert child.poll() is None, (folder / "prometheus.log").read_text()[-2000:]
                try:
                    return (await http.get("/-/ready")).status_code == 200
                except httpx.TransportError:
                    return False

            await until(is_ready, seconds=PATIENCE_S)
            yield http
    finally:
        child.kill()
        child.wait()


def _launch(command: list[Any], log: Path) -> "subprocess.Popen[bytes]":
    with log.open("wb") as file:
        return subprocess.Popen(command, stdout=file, stderr=file)
