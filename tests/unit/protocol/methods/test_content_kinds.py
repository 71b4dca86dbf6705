"""Blocks that an older revision does not know, in messages to its client."""

from typing import Any

from gateway.protocol.methods.content_kinds import known_messages

AUDIO = {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
MANY: dict[str, Any] = {"role": "user", "content": [AUDIO]}
"""Messages of several blocks came after audio: they are left as they are."""


def test_a_question_to_a_model_has_no_audio_where_that_is_unknown() -> None:
    """MCP: sampling messages of 2024-11-05 are text and images (SRV-1)."""
    (reported, many) = known_messages([{"role": "user", "content": AUDIO}, MANY], "2024-11-05")

    assert (reported["role"], reported["content"]["type"]) == ("user", "text")
    assert "audio/wav" in reported["content"]["text"]
    assert many is MANY
    assert known_messages([{"role": "user", "content": AUDIO}], "2025-03-26") == [{"role": "user", "content": AUDIO}]
