"""Repeated requests, and the time between them."""

import pytest

from gateway.domain.http.requests import UpstreamRequest
from gateway.upstream.http.errors import (
    BrokenOff,
    ConnectedLate,
    Disconnected,
    DistrustedTls,
    Malformed,
    NameUnknown,
    NotConnected,
    Torn,
)
from gateway.upstream.limits import MAX_RETRIES
from gateway.upstream.retries import after_fault, after_response, is_failure

READ = UpstreamRequest(method="GET", url="http://h/", idempotent=True)
WRITE = UpstreamRequest(method="POST", url="http://h/")


@pytest.mark.parametrize("error", [NotConnected(), NameUnknown(), ConnectedLate()])
@pytest.mark.parametrize("request_", [READ, WRITE])
def test_an_unsent_request_may_be_sent(error: Exception, request_: UpstreamRequest) -> None:
    """Ours: without a connection nothing has arrived, whatever it was."""
    assert after_fault(error, request_, 0) is not None


@pytest.mark.parametrize("error", [Disconnected(), Torn()])
def test_a_request_that_may_have_arrived_is_repeated_only_if_idempotent(error: Exception) -> None:
    """RFC 9110 section 9.2.2: only an idempotent request is repeated; at first at once (R2)."""
    assert after_fault(error, READ, 0) == 0
    assert after_fault(error, READ, 1) is not None
    assert after_fault(error, WRITE, 0) is None


@pytest.mark.parametrize(
    "error",
    [DistrustedTls(), BrokenOff(), Malformed(), TimeoutError(), OSError(), ValueError()],
)
def test_a_request_with_a_lasting_fault_is_not_repeated(error: Exception) -> None:
    """Ours: a certificate does not get better, and an answer that was late may still be under way."""
    assert after_fault(error, READ, 0) is None


def test_a_slow_connection_is_tried_once_more() -> None:
    """Ours: seconds have passed already."""
    assert after_fault(ConnectedLate(), READ, 1) is None


@pytest.mark.parametrize("error", [NotConnected(), Disconnected()])
def test_nothing_is_sent_more_than_three_times(error: Exception) -> None:
    """Ours: the bound holds for faults and for answers."""
    assert after_fault(error, READ, MAX_RETRIES) is None
    assert after_response(503, None, READ, MAX_RETRIES) is None


@pytest.mark.parametrize("status", [502, 503, 504])
def test_an_unavailable_upstream_is_called_again(status: int) -> None:
    """Ours: idempotent requests only, with a pause that is random in full (R2)."""
    pauses = {after_response(status, None, READ, 1) for _ in range(50)}

    assert len(pauses) > 40
    assert all(pause is not None and 0 <= pause <= 0.4 for pause in pauses)
    assert after_response(status, None, WRITE, 0) is None


@pytest.mark.parametrize(
    ("status", "retry_after", "again"),
    [
        (503, "0", True),
        (503, " 2 ", True),
        (429, "1", True),
        (429, None, False),
        (503, "3", False),
        (429, "120", False),
        (503, "Fri, 31 Dec 1999 23:59:59 GMT", False),
        (503, "-1", False),
        (503, "1e9", False),
        (503, "٣", False),
        (503, "9" * 5000, False),
        (500, None, False),
        (500, "1", False),
        (404, "1", False),
        (301, "1", False),
    ],
)
def test_a_requested_pause_is_kept_or_the_answer_returned(status: int, retry_after: str | None, again: bool) -> None:
    """RFC 9110 section 10.2.3: no earlier than the upstream demands; the client decides about longer waits."""
    pause = after_response(status, retry_after, READ, 0)

    assert (pause is not None) is again
    if pause is not None:
        assert pause >= float(retry_after or 0)


def test_only_an_upstream_that_is_away_counts_as_failing() -> None:
    """Ours: an operation that is broken or refuses does not shut the others out."""
    assert [status for status in range(200, 600) if is_failure(status)] == [502, 503, 504, *range(520, 528), 530]
