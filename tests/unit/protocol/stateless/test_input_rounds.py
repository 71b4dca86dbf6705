"""State that the client of 2026-07-28 carries from round to round, once the seal is open."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.exceptions import MCPError

from gateway.errors import HandlerFailed
from gateway.handlers.interfaces import InputRequest, InputRequired
from gateway.protocol.stateless.input_rounds import RoundState, decode_state, input_required
from gateway.protocol.stateless.limits import MAX_STATE_BYTES

ASK = InputRequest(kind="elicitation", params={"message": "Really?"})
SHORT = st.text(max_size=5)
JSON = st.recursive(st.none() | st.booleans() | st.integers(-(2**53), 2**53) | SHORT, st.lists, max_leaves=5)
MEMBERS = st.dictionaries(SHORT, JSON, max_size=3)


@given(st.dictionaries(SHORT, MEMBERS, max_size=3), MEMBERS)
def test_stored_answers_read_back(answers: dict[str, Any], memory: dict[str, Any]) -> None:
    """Ours: nothing is lost between rounds (CAL-4)."""
    result = input_required(InputRequired({"ok": ASK}, {"answers": answers, "memory": memory}), nonce="n")

    rounds = decode_state(result["requestState"])

    assert rounds == RoundState(answers=answers, memory=memory, asked={"ok": "elicitation"}, nonce="n")
    assert result["resultType"] == "input_required"
    assert result["inputRequests"] == {"ok": {"method": "elicitation/create", "params": {"message": "Really?"}}}


def test_a_client_is_not_made_to_carry_anything() -> None:
    """Ours: stored state expires (TEN-5)."""
    too_much = {"memory": {"x": "y" * MAX_STATE_BYTES}}
    with pytest.raises(HandlerFailed):
        input_required(InputRequired({"ok": ASK}, too_much), nonce="n")
    with pytest.raises(HandlerFailed):
        input_required(InputRequired({"ok": ASK}, {"memory": {"x": object()}}), nonce="n")


@pytest.mark.parametrize("state", ["", "{", "[]", '{"answers":1}', '{"asked":{"x":"y"}}', "null"])
def test_a_malformed_state_is_refused(state: str) -> None:
    """Ours: also behind a good seal only our own form is believed (TEN-5)."""
    with pytest.raises(MCPError) as caught:
        decode_state(state)
    assert caught.value.error.code == -32602


def test_an_unknown_member_of_a_newer_replica_does_not_hurt() -> None:
    """Ours: while replicas are replaced, old and new read each other's states (SRV-3)."""
    newer = msgspec.json.encode({"answers": {}, "memory": {}, "asked": {}, "nonce": "n", "later": 1}).decode()
    assert decode_state(newer).nonce == "n"
