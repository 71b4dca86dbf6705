"""Calls whose user has no account yet: who is asked to connect one, and how often."""

import math

import pytest

from gateway.domain.refusals import AccountRequired
from gateway.handlers.credentials import ask_to_connect
from gateway.handlers.interfaces import InputRequired
from tests.support.peers import RoundsPeer, TalkingPeer

REQUIRED = AccountRequired("open the page", credential="tracker", url="https://gateway.example/t/acme/connect")
KEY = "gateway/connect/tracker"
ACCEPTED = {KEY: {"action": "accept"}}


async def test_a_client_of_2026_is_sent_to_the_page_once() -> None:
    """MCP 2026-07-28: an input request with the URL; after its answer, the call goes on or fails (TEN-4)."""
    with pytest.raises(InputRequired) as asked:
        await ask_to_connect(RoundsPeer(), REQUIRED)
    [(key, question)] = asked.value.input_requests.items()
    assert (key, question.kind) == (KEY, "elicitation")
    assert (question.params["mode"], question.params["url"]) == ("url", REQUIRED.url)
    for action in ("accept", "decline"):
        await ask_to_connect(RoundsPeer(answers={KEY: {"action": action}}), REQUIRED)


@pytest.mark.parametrize("timeout_s", [0.0, math.inf], ids=["request", "task"])
async def test_a_request_and_a_task_ask(timeout_s: float) -> None:
    """Ours: a task asks as its request would (TEN-4)."""
    peer = TalkingPeer(answers=ACCEPTED, approval_timeout_s=timeout_s)
    await ask_to_connect(peer, REQUIRED)
    assert list(peer.asked) == [KEY]


async def test_clients_without_pages_and_sessions_are_not_asked() -> None:
    """Ours: these read the link in the error; no request of a session waits for a person (TEN-4)."""
    for peer in (
        TalkingPeer(cannot=frozenset({"elicitation.url"})),
        TalkingPeer(answers=ACCEPTED, approval_timeout_s=45.0),
    ):
        await ask_to_connect(peer, REQUIRED)
        assert peer.asked == {}


async def test_a_client_that_does_not_answer_leaves_the_link() -> None:
    """Ours: a silent client is no other error (TEN-4)."""
    await ask_to_connect(TalkingPeer(), REQUIRED)
