"""Result of one poll of a watched URL."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gateway.domain.identifiers import WatchId
from gateway.domain.updates.watches import Sighting, Watch
from gateway.jobs.limits import MAX_BACKOFF_S
from gateway.jobs.watch_poller import compare_response, failed_sighting, make_request, pause
from gateway.upstream.client import FullResponse

NOW = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
WATCH = Watch(
    id=WatchId("wat_1"),
    uri="note://1",
    url="https://example.com/x",
    interval_s=60,
    credential=None,
    version=1,
    created_at=NOW,
    updated_at=NOW,
)


def _answer(body: bytes = b"one", status: int = 200, **headers: str) -> FullResponse:
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return FullResponse(status=status, headers=named, body=body)


FIRST = compare_response(Sighting(), _answer(ETag='"1"', Last_Modified="Fri, 20 Nov 2026 12:00:00 GMT"), now=NOW)


def test_the_first_look_only_remembers() -> None:
    """Ours: existing content causes no notification (RES-5)."""
    assert FIRST.changed_at is None
    assert (FIRST.checked_at, FIRST.failures, FIRST.fault) == (NOW, 0, None)


@pytest.mark.parametrize(
    ("answer", "is_other"),
    [
        (_answer(b"one"), False),
        (_answer(b"one", ETag='"2"'), False),
        (_answer(b"two"), True),
        (_answer(b"two", ETag='"1"'), True),
        (_answer(b"", status=304), False),
        (_answer(b""), True),
    ],
)
def test_the_body_decides(answer: FullResponse, is_other: bool) -> None:
    """Ours: an ETag saves sending a body; only the body shows a change (RES-5)."""
    assert (compare_response(FIRST, answer, now=LATER).changed_at == LATER) is is_other


def test_a_poll_requests_only_new_content() -> None:
    """RFC 9110: If-None-Match and If-Modified-Since repeat what was received."""
    assert make_request(WATCH).headers == (("Accept", "*/*"),)
    assert make_request(replace(WATCH, status=FIRST)).headers == (
        ("Accept", "*/*"),
        ("If-None-Match", '"1"'),
        ("If-Modified-Since", "Fri, 20 Nov 2026 12:00:00 GMT"),
    )


@pytest.mark.parametrize("value", ["", "a\r\nX-Evil: 1", "é", "x" * 2000])
def test_a_validator_that_cannot_be_sent_back_is_not_kept(value: str) -> None:
    """Ours: an upstream writes no header of ours."""
    assert compare_response(Sighting(), _answer(ETag=value), now=NOW).etag is None


@pytest.mark.parametrize("status", [304, 301, 404, 500])
def test_a_look_that_saw_nothing_changes_nothing(status: int) -> None:
    """Ours: a broken upstream is no update, and what was seen before is compared with what comes after (RES-5)."""
    before = Sighting() if status == 304 else FIRST
    failed = compare_response(before, _answer(b"oops", status=status), now=LATER)

    assert (failed.digest, failed.failures, failed.changed_at) == (before.digest, 1, None)
    assert str(status) in (failed.fault or "")
    assert ("redirects" in (failed.fault or "")) is (status == 301)
    assert compare_response(replace(failed, digest=FIRST.digest), _answer(b"two"), now=LATER).changed_at == LATER


def test_looks_that_fail_are_made_less_and_less_often() -> None:
    """Ours: twice the pause after each failure, up to an hour; never twice the same (RES-5)."""
    seen, pauses = FIRST, [pause(WATCH, FIRST).total_seconds()]
    for _ in range(20):
        seen = failed_sighting(seen, "away", now=LATER)
        pauses.append(pause(WATCH, seen).total_seconds())

    assert 54 <= pauses[0] <= 66
    assert 108 <= pauses[1] <= 132
    assert all(0.9 * MAX_BACKOFF_S <= each <= 1.1 * MAX_BACKOFF_S for each in pauses[7:])
    assert len(set(pauses)) == len(pauses)
    assert pause(replace(WATCH, interval_s=86_400), seen).total_seconds() >= 0.9 * 86_400
