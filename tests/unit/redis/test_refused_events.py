"""Log lines of messages that were not believed."""

import time

import pytest
from structlog.testing import capture_logs

from gateway.redis.limits.limits import MAX_LOGGED_PER_MINUTE
from gateway.redis.refused_events import RefusedEvents


def test_a_flood_of_refusals_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a foreign publisher does not fill the log, and the next minute has the number."""
    refusals, real = RefusedEvents(), time.monotonic
    with capture_logs() as lines:
        for _ in range(MAX_LOGGED_PER_MINUTE + 15):
            refusals.note(b"gw:t:ten_x:events", "mac")
        monkeypatch.setattr("gateway.redis.refused_events.time.monotonic", lambda: real() + 61)
        refusals.note(b"gw:t:ten_y:events", "form")

    logged = ["event_refused"] * MAX_LOGGED_PER_MINUTE
    assert [line["event"] for line in lines] == [*logged, "event_refusals_suppressed", "event_refused"]
    assert lines[MAX_LOGGED_PER_MINUTE]["suppressed"] == 15
    assert (lines[-1]["channel"], lines[-1]["reason"]) == ("b'gw:t:ten_y:events'", "form")
