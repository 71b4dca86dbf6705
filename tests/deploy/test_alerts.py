"""The alerts over series of our making: silent while all is well, each on what it is for, by Prometheus' own tool."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.compose import ROOT
from tests.deploy.programs import find_program

RULES = ROOT / "deploy/prometheus/alerts.yaml"

_A = 'job="mcp-gateway",instance="a"'
_B = 'job="mcp-gateway",instance="b"'
_CALLS = f'gateway_calls_total{{{_A},tenant="acme",source="api",outcome="%s"}}'
_FAST = f'gateway_call_seconds_bucket{{{_A},part="gateway",le="%s"}}'

_LOOKS = f'gateway_source_refreshes_total{{{_A},outcome="%s"}}'
Series = dict[str, str]
"""Values of a series every 15 s: `0+3x200` begins with 0 and grows by 3 two hundred times; `_` is nothing."""

WELL: Series = {
    f"up{{{_A}}}": "1x200",
    f"up{{{_B}}}": "1x200",
    _CALLS % "ok": "0+100x200",
    _CALLS % "limited": "0+1x200",
    _CALLS % "upstream.timeout": "0+2x200",
    _FAST % "0.005": "0+100x200",
    _FAST % "1": "0+100x200",
    _FAST % "+Inf": "0+100x200",
    f'gateway_http_answers_total{{{_A},status="200"}}': "0+1000x200",
    f'gateway_http_answers_total{{{_A},status="401"}}': "0+1x200",
    f'gateway_http_answers_total{{{_A},status="503"}}': "0+1x200",
    f"gateway_audit_failures_total{{{_A}}}": "0x200",
    f"gateway_audit_waiting{{{_A}}}": "10x200",
    f"gateway_audit_overflow{{{_A}}}": "0x200",
    f"gateway_events_live{{{_A}}}": "1x200",
    f"gateway_event_lag_seconds{{{_A}}}": "0.002x200",
    f"gateway_log_lines_lost_total{{{_A}}}": "0x200",
    f'gateway_parts_failing{{{_A},part="redis"}}': "0x200",
    f"process_open_fds{{{_A}}}": "200x200",
    f"process_max_fds{{{_A}}}": "65536x200",
    f"process_resident_memory_bytes{{{_A}}}": "200000000x200",
}
ILL: dict[str, Series] = {
    "GatewayGone": {f"up{{{_A}}}": "1x60 0x140", f"up{{{_B}}}": "1x60 0x140"},
    "GatewayReplicaDown": {f"up{{{_A}}}": "1x60 0x140"},
    "GatewayFails": {f'gateway_http_answers_total{{{_A},status="503"}}': "0+50x200"},
    "GatewayCallsCrash": {_CALLS % "crashed": "_x160 1x40"},
    "GatewayUpstreamFails": {_CALLS % "upstream.timeout": "0+90x200"},
    "GatewaySlow": {_FAST % "0.005": "0+10x200"},
    "GatewayAuditFails": {f"gateway_audit_failures_total{{{_A}}}": "0x180 1x20"},
    "GatewayAuditBacklog": {f"gateway_audit_waiting{{{_A}}}": "10x100 5000x100"},
    "GatewayAuditOverflow": {f"gateway_audit_overflow{{{_A}}}": "0x100 7x100"},
    "GatewayEventsLost": {f"gateway_events_live{{{_A}}}": "1x100 0x100"},
    "GatewayEventsLate": {f"gateway_event_lag_seconds{{{_A}}}": "3x200"},
    "GatewayLimits": {_CALLS % "limited": "0+60x200"},
    "GatewayKeysGuessed": {f'gateway_http_answers_total{{{_A},status="401"}}': "0+600x200"},
    "GatewaySourcesFail": {_LOOKS % "failed": "0+1x200", _LOOKS % "unchanged": "0+0.5x200"},
    "GatewayDegraded": {f'gateway_parts_failing{{{_A},part="redis"}}': "0x100 1x100"},
    "GatewayLogLost": {f"gateway_log_lines_lost_total{{{_A}}}": "0+1x200"},
    "GatewayDescriptors": {f"process_open_fds{{{_A}}}": "60000x200"},
    "GatewayMemory": {f"process_resident_memory_bytes{{{_A}}}": "1500000000x200"},
}
ALSO = {"GatewayGone": {"GatewayReplicaDown"}}
"""Alerts that rightly accompany an alert."""


def _case(name: str, series: Series, expected: set[str]) -> dict[str, Any]:
    """Exactly these alerts are on after 48 minutes."""
    firing = 'group by (alertname) (ALERTS{alertstate="firing"})'
    samples = [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in sorted(expected)]
    return {
        "name": name,
        "interval": "15s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{"expr": firing, "eval_time": "48m", "exp_samples": samples}],
    }


def _judge(folder: Path, cases: Sequence[dict[str, Any]]) -> str:
    """The complaints of promtool about the cases; empty if every case holds."""
    (folder / "alerts.yaml").write_text(RULES.read_text())
    document = {"rule_files": ["alerts.yaml"], "evaluation_interval": "1m", "tests": list(cases)}
    (folder / "test.yaml").write_text(yaml.safe_dump(document))
    command = [str(find_program("prometheus", "promtool")), "test", "rules", "test.yaml"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return "" if ended.returncode == 0 else ended.stdout + ended.stderr


def test_every_alert_has_a_case() -> None:
    """Ours: every alert was seen firing."""
    groups = yaml.safe_load(RULES.read_text())["groups"]

    assert {rule["alert"] for group in groups for rule in group["rules"]} == set(ILL)


def test_each_alert_is_on_for_its_fault_and_none_is_on_while_all_is_well(tmp_path: Path) -> None:
    """Ours: some timeouts, refusals and failures are every day's; a fault wakes by its own name (SRV-6)."""
    cases = [_case(name, WELL | ILL[name], {name} | ALSO.get(name, set())) for name in ILL]

    assert _judge(tmp_path, [_case("all is well", WELL, set()), *cases]) == ""
    assert "GatewayGone" in _judge(tmp_path, [_case("wrong", WELL, {"GatewayGone"})]), "a wrong case is noticed"
