"""The log lines of refused credentials."""

import structlog.testing

from gateway.web.refusal_log import BURST, RefusalLog


def test_a_flood_of_refusals_writes_few_lines_and_counts_the_rest() -> None:
    """Security review 8: each of 1,703 wrong keys a second wrote a line (ISO-6)."""
    now = [1.0]
    refusals = RefusalLog(clock=lambda: now[0])
    with structlog.testing.capture_logs() as lines:
        for _ in range(10_000):
            refusals.note("192.0.2.1", "/t/acme/mcp")
        now[0] += 1
        refusals.note("192.0.2.2", "/admin/v1/tenants")

    assert len(lines) == BURST + 1
    assert lines[0] == {
        "event": "credential_refused",
        "client": "192.0.2.1",
        "path": "/t/acme/mcp",
        "log_level": "info",
    }
    assert (lines[-1]["client"], lines[-1]["suppressed"]) == ("192.0.2.2", 10_000 - BURST)
