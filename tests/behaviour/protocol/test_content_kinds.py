"""Content of kinds that came with later revisions, for clients of each revision."""

from typing import Any

import pytest

from tests.behaviour.protocol.conftest import Acme
from tests.support.gateway import MODERN
from tests.support.handshake import open_session
from tests.support.primitives import add, prompt, tool

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN)
AUDIO = {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav", "annotations": {"audience": ["user"]}}
LINK = {"type": "resource_link", "uri": "note://1", "name": "one", "title": "The first", "description": "A note."}
PLAIN = [
    {"type": "text", "text": "hello"},
    {"type": "image", "data": "R0lGOA==", "mimeType": "image/gif"},
    {"type": "resource", "resource": {"uri": "note://2", "mimeType": "text/plain", "text": "two"}},
]
AUDIO_AS_TEXT = {
    "type": "text",
    "text": "[audio omitted: audio/wav, 4 bytes; clients of MCP 2025-03-26 and later get it]",
    "annotations": {"audience": ["user"]},
}
LINK_AS_TEXT = {"type": "text", "text": "The first: note://1\nA note."}


@pytest.fixture(scope="module")
async def acme(common_acme: Acme) -> Acme:
    """A tenant with a tool, a tool that reports progress, and a prompt, each of which returns every kind."""
    blocks = [*PLAIN, AUDIO, LINK]
    steps = [{"progress": {"progress": 1}}, {"return": {"content": blocks}}]
    messages = [{"role": "user", "content": block} for block in blocks]
    await add(common_acme.gateway, "acme", "tools", tool("every", {"kind": "static", "content": blocks}))
    await add(common_acme.gateway, "acme", "tools", tool("told", {"kind": "steps", "steps": steps}, safety="safe"))
    await add(common_acme.gateway, "acme", "prompts", prompt("every", {"kind": "static", "messages": messages}))
    return common_acme


async def _ask(acme: Acme, revision: str, method: str, name: str) -> list[dict[str, Any]]:
    if revision == MODERN:
        answer = (await acme.gateway.rpc("acme", acme.key, method, {"name": name})).json()
    else:
        session = await open_session(acme.gateway, "acme", acme.key, version=revision)
        answer = await session.rpc(method, {"name": name})
    result: dict[str, Any] = answer["result"]
    return [message["content"] for message in result["messages"]] if "messages" in result else result["content"]


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("method", "name"), [("tools/call", "every"), ("tools/call", "told"), ("prompts/get", "every")]
)
async def test_a_revision_is_sent_the_kinds_that_it_knows(acme: Acme, revision: str, method: str, name: str) -> None:
    """MCP: audio came with 2025-03-26, links with 2025-06-18; earlier clients get text (SRV-1, CAL-1)."""
    audio = AUDIO_AS_TEXT if revision == "2024-11-05" else AUDIO
    link = LINK_AS_TEXT if revision < "2025-06-18" else LINK

    assert await _ask(acme, revision, method, name) == [*PLAIN, audio, link]
