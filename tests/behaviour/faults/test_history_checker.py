"""The history checker finds what it is there to find."""

import json
from random import Random
from typing import Any, cast

import pytest

from tests.support.contradictions import find_disagreements
from tests.support.history import RUN, Arrived, Called, EchoingUpstream, History


def _history() -> History:
    """One tenant's two calls as they should have gone; nothing runs."""
    upstream = EchoingUpstream()
    history = History(cast(Any, None), upstream, {}, "", "", {}, Random(1))
    for number, (tool, method) in enumerate((("look", "GET"), ("act", "POST")), 1):
        answer = json.dumps({"id": number, "of": "canary-of-acme"})
        history.calls.append(Called(number, "acme", tool, "2026-07-28", "ok", answer))
        upstream.seen.append(Arrived(method, f"/acme/{tool}/{number}", "*/*"))
    history.received["acme"].append("note://acme")
    return history


def test_a_history_without_fault_has_no_contradiction() -> None:
    """Ours: nothing is found where nothing is wrong (SRV-3)."""
    assert find_disagreements(_history()) == []


def _lose(history: History) -> None:
    history.calls[0].outcome = "silent"


def _swap(history: History) -> None:
    history.calls[0].detail = json.dumps({"id": 2, "of": "canary-of-acme"})


def _leak(history: History) -> None:
    history.calls[0].outcome, history.calls[0].detail = "failed", "canary-of-globex"


def _repeat(history: History) -> None:
    history.upstream.seen.append(history.upstream.seen[1])


def _rerun(history: History) -> None:
    history.upstream.seen += [Arrived(RUN, "/acme/look/1", "")] * 2


def _invent(history: History) -> None:
    history.upstream.seen.append(Arrived("GET", "/acme/look/7", "*/*"))


def _misdirect(history: History) -> None:
    history.upstream.seen[0] = Arrived("GET", "/globex/look/1", "*/*")


def _forget(history: History) -> None:
    del history.upstream.seen[1]


def _mishear(history: History) -> None:
    history.received["acme"].append("note://globex")


@pytest.mark.parametrize("spoil", [_lose, _swap, _leak, _repeat, _rerun, _invent, _misdirect, _forget, _mishear])
def test_each_kind_of_contradiction_is_found(spoil: Any) -> None:
    """Ours: a checker that finds nothing has to be one that could (SRV-3)."""
    history = _history()
    spoil(history)

    assert find_disagreements(history) != []


def test_repeatable_requests_may_arrive_twice() -> None:
    """Ours: a GET that is sent again is no contradiction (SRV-3)."""
    history = _history()
    history.upstream.seen.append(history.upstream.seen[0])

    assert find_disagreements(history) == []
