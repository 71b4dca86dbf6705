"""How an upstream's answer reads as a tool result."""

import json
from base64 import b64decode
from typing import Any

import pytest

from gateway.calls import shape
from gateway.domain.requests import UpstreamAnswer
from gateway.errors import ArgumentsInvalid, Fault


def _result(status: int, content_type: str, body: bytes, *, retry_after: str | None = None) -> dict[str, Any]:
    answer = UpstreamAnswer(status=status, content_type=content_type, body=body, retry_after=retry_after)
    result: dict[str, Any] = json.loads(b"{" + shape.content(answer) + b"}")
    return result


def test_a_json_object_is_structured_content_and_compact_text() -> None:
    """MCP: structured content comes with the same JSON as text."""
    result = _result(200, "application/json", b'{ "a": [1, 2] }')

    assert result["structuredContent"] == {"a": [1, 2]}
    assert result["content"] == [{"type": "text", "text": '{"a":[1,2]}'}]
    assert result["isError"] is False


def test_numbers_stay_as_the_upstream_wrote_them() -> None:
    """Ours: an integer beyond 64 bits is not turned into a float."""
    raw = shape.content(
        UpstreamAnswer(status=200, content_type="application/json", body=b'{"id":123456789012345678901}')
    )

    assert b'"structuredContent":{"id":123456789012345678901}' in raw


@pytest.mark.parametrize("kind", ["application/problem+json", "application/vnd.api+json; charset=utf-8"])
def test_json_in_a_vendor_type_is_json(kind: str) -> None:
    """RFC 6839: +json is JSON."""
    assert _result(200, kind, b"[1]")["structuredContent"] == [1]


def test_what_says_json_and_is_not_is_shown_as_text() -> None:
    """Ours: an upstream's lie about its type does not lose the answer."""
    result = _result(200, "application/json", b"<html>")

    assert result["content"] == [{"type": "text", "text": "<html>"}]
    assert "structuredContent" not in result


def test_invalid_utf8_inside_json_is_shown_as_text() -> None:
    """Ours: bytes that are no UTF-8 never reach the client as JSON."""
    assert "structuredContent" not in _result(200, "application/json", b'{"a":"\xff"}')


def test_null_is_text_alone() -> None:
    """Ours: JSON null is no structured content, in no era."""
    assert _result(200, "application/json", b" null ") == {
        "content": [{"type": "text", "text": "null"}],
        "isError": False,
    }


def test_text_that_looks_like_json_stays_text() -> None:
    """OpenAPI: the content type says what a body is."""
    result = _result(200, "text/plain", b"123")

    assert result["content"] == [{"type": "text", "text": "123"}]
    assert "structuredContent" not in result


def test_a_declared_charset_is_decoded() -> None:
    """RFC 9110: the charset parameter says how to read text."""
    assert _result(200, "text/plain; charset=latin-1", "é".encode("latin-1"))["content"][0]["text"] == "é"


@pytest.mark.parametrize(("kind", "block"), [("image/png", "image"), ("audio/wav", "audio")])
def test_images_and_audio_are_their_blocks(kind: str, block: str) -> None:
    """MCP: images and audio travel as base64 with their type."""
    [item] = _result(200, kind, b"\x89PNG\xff")["content"]

    assert (item["type"], item["mimeType"]) == (block, kind)
    assert b64decode(item["data"]) == b"\x89PNG\xff"


def test_other_bytes_are_an_embedded_blob() -> None:
    """MCP: bytes of no other kind are an embedded resource."""
    [item] = _result(200, "application/pdf", b"%PDF\xff\x00")["content"]

    assert item["type"] == "resource"
    assert item["resource"]["mimeType"] == "application/pdf"
    assert b64decode(item["resource"]["blob"]) == b"%PDF\xff\x00"


def test_no_body_is_no_content() -> None:
    """RFC 9110: 204 has no body; the result has no block."""
    assert _result(204, "", b"") == {"content": [], "isError": False}


def test_an_error_status_is_an_error_result_with_status_body_and_retry_hint() -> None:
    """Ours: what the upstream refused is something the model can read."""
    result = _result(503, "text/html", b"<h1>busy</h1>", retry_after="7")

    assert result["isError"] is True
    assert result["content"][0]["text"] == "HTTP 503 Service Unavailable\nRetry-After: 7\n<h1>busy</h1>"
    assert result["_meta"]["gateway/upstream"] == {"status": 503, "retry_after": "7"}


def test_the_body_of_an_error_is_bounded() -> None:
    """Ours: a page of megabytes is not repeated to the client."""
    assert len(_result(500, "text/plain", b"x" * 100_000)["content"][0]["text"]) < 2200


def test_a_binary_error_body_is_named_not_shown() -> None:
    """Ours: bytes that are no text are counted instead."""
    text = _result(500, "application/pdf", b"\xff\x00" * 50)["content"][0]["text"]

    assert text == "HTTP 500 Internal Server Error\n(100 bytes of application/pdf)"


def test_a_redirect_is_an_error_because_it_is_never_followed() -> None:
    """Ours: no answer of an upstream sends us elsewhere."""
    result = _result(302, "", b"")

    assert result["isError"] is True
    assert "302" in result["content"][0]["text"]


def test_a_failure_names_each_path_and_its_reason() -> None:
    """Ours: the model can mend its arguments from the text (CAL-2)."""
    error = ArgumentsInvalid("they do not match", faults=[Fault(pointer="/id", reason="is not an integer")])

    result = json.loads(b"{" + shape.failure(error, "c-1") + b"}")

    assert result["content"][0]["text"] == "they do not match\n/id: is not an integer"
    assert result["_meta"]["gateway/error"] == {"code": "call.arguments_invalid", "correlation_id": "c-1"}
    assert result["isError"] is True


def test_a_crash_says_nothing_of_the_inside() -> None:
    """Ours: an unexpected exception is a correlation id to the client, no more (CAL-4)."""
    assert json.loads(b"{" + shape.crash("c-2") + b"}")["_meta"]["gateway/error"]["correlation_id"] == "c-2"
