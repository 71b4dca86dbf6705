"""A policy that wants the user's word before a call is made."""

from typing import Any

import mcp_types as types
import pytest
from mcp import Client

from tests.behaviour.sessions.conftest import Talk, furnish
from tests.support.replicas import Mode, Replicas
from tests.support.upstream import RecordingUpstream

ERAS: tuple[Mode, ...] = ("legacy", "2026-07-28")


@pytest.fixture(scope="module")
async def common_slug(shared_replicas: Replicas, upstream: RecordingUpstream) -> str:
    """A tenant that wants its users' word before every call."""
    await shared_replicas.heal()
    gateway = shared_replicas.a.gateway
    await furnish(gateway, "confirming", upstream, ())
    answer = await gateway.admin.patch("/tenants/confirming/policy", json={"safe": "confirm"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["safe"] == "confirm"
    return "confirming"


async def _ask_for_a_pet(client: Client) -> types.CallToolResult:
    return await client.call_tool("get_pet", {"id": 7})


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("reported", "sent"),
    [
        (types.ElicitResult(action="accept", content={"confirm": True}), 1),
        (types.ElicitResult(action="accept", content={"confirm": False}), 0),
        (types.ElicitResult(action="accept"), 0),
        (types.ElicitResult(action="decline"), 0),
        (types.ElicitResult(action="cancel"), 0),
    ],
)
async def test_the_user_is_asked_and_only_a_yes_is_one(
    talk: Talk, mode: Mode, reported: types.ElicitResult, sent: int
) -> None:
    """Ours: the question shows the request; nothing is sent without a yes, and with one exactly once (SAF-2)."""
    asked: list[str] = []

    async def answer(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return reported

    async with talk.replicas.client(talk.slug, talk.key, mode, elicitation_callback=answer) as client:
        result = await _ask_for_a_pet(client)

    assert len(asked) == 1
    assert "/pets/7" in asked[0]
    assert result.is_error is not bool(sent)
    assert len(talk.upstream.seen) == sent
    if reported.action == "accept" and reported.content is None:
        assert isinstance(result.content[0], types.TextContent)
        assert "its response lacks `confirm: true`" in result.content[0].text


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_that_cannot_ask_its_user_is_refused(talk: Talk, mode: Mode) -> None:
    """Ours: the call waits for the approval of another person instead, and nothing is sent (SAF-2)."""
    async with talk.replicas.client(talk.slug, talk.key, mode) as client:
        with talk.replicas.a.hurrying(), talk.replicas.b.hurrying():  # a session waits 45 s
            result = await _ask_for_a_pet(client)

    assert result.is_error
    assert (result.meta or {})["gateway/approval"]["state"] == "pending"
    assert talk.upstream.seen == []
