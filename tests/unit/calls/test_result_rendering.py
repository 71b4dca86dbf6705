"""Tool results of an upstream's responses."""

import json
from base64 import b64decode
from typing import Any

import pytest

from gateway.calls import result_rendering
from gateway.calls.limits import MAX_TEXT_BYTES
from gateway.domain.http.requests import UpstreamResponse
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.principals import Principal
from gateway.errors import ArgumentsInvalid, Fault, HandlerFailed, RedisUnavailable


def _result(status: int, content_type: str, body: bytes, *, retry_after: str | None = None) -> dict[str, Any]:
    answer = UpstreamResponse(status=status, content_type=content_type, body=body, retry_after=retry_after)
    result: dict[str, Any] = json.loads(b"{" + result_rendering.content(answer) + b"}")
    return result


def test_a_json_object_is_structured_content_and_compact_text() -> None:
    """MCP: structured content comes with the same JSON as text."""
    result = _result(200, "application/json", b'{ "a": [1, 2] }')

    assert result["structuredContent"] == {"a": [1, 2]}
    assert result["content"] == [{"type": "text", "text": '{"a":[1,2]}'}]
    assert result["isError"] is False


def test_numbers_stay_as_the_upstream_wrote_them() -> None:
    """Ours: an integer beyond 64 bits is not turned into a float."""
    raw = result_rendering.content(
        UpstreamResponse(status=200, content_type="application/json", body=b'{"id":123456789012345678901}')
    )

    assert b'"structuredContent":{"id":123456789012345678901}' in raw


@pytest.mark.parametrize("kind", ["application/problem+json", "application/vnd.api+json; charset=utf-8"])
def test_json_in_a_vendor_type_is_json(kind: str) -> None:
    """RFC 6839: +json is JSON."""
    assert _result(200, kind, b"[1]")["structuredContent"] == [1]


def test_broken_json_is_shown_as_text() -> None:
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
    """OpenAPI: the content type determines the kind of a body."""
    result = _result(200, "text/plain", b"123")

    assert result["content"] == [{"type": "text", "text": "123"}]
    assert "structuredContent" not in result


def test_a_declared_charset_is_decoded() -> None:
    """RFC 9110: the charset parameter determines the decoding of text."""
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


def test_a_response_without_a_body_has_its_status_as_text() -> None:
    """Ours: the result of a 204 states that the call was made (OAS-10)."""
    assert _result(204, "", b"") == {
        "content": [{"type": "text", "text": "HTTP 204 No Content"}],
        "isError": False,
        "_meta": {"gateway/upstream": {"status": 204}},
    }


def test_an_error_status_is_an_error_result_with_status_body_and_retry_hint() -> None:
    """Ours: the model can read the upstream's refusal."""
    result = _result(503, "text/html", b"<h1>busy</h1>", retry_after="7")

    assert result["isError"] is True
    assert result["content"][0]["text"] == "HTTP 503 Service Unavailable\nRetry-After: 7\n<h1>busy</h1>"
    assert result["_meta"]["gateway/upstream"] == {"status": 503, "retry_after": "7"}


def test_the_body_of_an_error_is_bounded() -> None:
    """Ours: a page of megabytes is not repeated to the client."""
    assert len(_result(500, "text/plain", b"x" * 100_000)["content"][0]["text"]) < 2200


def test_a_binary_error_body_is_named_not_shown() -> None:
    """Ours: bytes that are not text are counted instead."""
    text = _result(500, "application/pdf", b"\xff\x00" * 50)["content"][0]["text"]

    assert text == "HTTP 500 Internal Server Error\n(100 bytes of application/pdf)"


def test_a_redirect_is_an_error_because_it_is_never_followed() -> None:
    """Ours: no answer of an upstream sends us elsewhere."""
    result = _result(302, "", b"")

    assert result["isError"] is True
    assert "302" in result["content"][0]["text"]


def test_a_failure_names_each_path_and_its_reason() -> None:
    """Ours: the model can correct its arguments from the text (CAL-2)."""
    error = ArgumentsInvalid("they do not match", faults=[Fault(pointer="/id", reason="is not an integer")])

    result = json.loads(b"{" + result_rendering.failure(error, "c-1") + b"}")

    assert result["content"][0]["text"] == "they do not match\n/id: is not an integer"
    assert result["_meta"]["gateway/error"] == {"code": "call.arguments_invalid", "correlation_id": "c-1"}
    assert result["isError"] is True


def test_a_failure_has_each_sentence_once() -> None:
    """Ours: a fault that the message already has is not repeated below it (CAL-2)."""
    fault = Fault(pointer="/id", reason="it is required")
    reported = ArgumentsInvalid("The argument /id cannot be sent: it is required.", faults=[fault])
    several = ArgumentsInvalid("/id: it is required (and 1 more)", faults=[fault, Fault(pointer="/n", reason="odd")])

    for error, lines in ((reported, 1), (several, 3)):
        result = json.loads(b"{" + result_rendering.failure(error, "c-1") + b"}")
        assert result["content"][0]["text"].count("\n") == lines - 1


def test_a_crash_shows_nothing_internal() -> None:
    """Ours: an unexpected exception is a code and a correlation id to the client, no more (CAL-4)."""
    notified = json.loads(b"{" + result_rendering.internal_error("c-2") + b"}")["_meta"]["gateway/error"]

    assert notified == {"code": "call.handler_failed", "correlation_id": "c-2"}


@pytest.mark.parametrize(
    ("kind", "body", "structure"),
    [
        ("application/json", b"\xef\xbb\xbf[1]", [1]),
        ("application/json; charset=iso-8859-1", b'{"a":"\xe9"}', {"a": "é"}),
        ("application/json; charset=utf-16", '{"a":1}'.encode("utf-16"), {"a": 1}),
        ("text/json", b"[1]", [1]),
        ("application/json", b'"text"', "text"),
        ("application/json", b"7", 7),
        ("application/json", b"false", False),
    ],
)
def test_json_is_json_in_any_charset_and_of_any_type(kind: str, body: bytes, structure: object) -> None:
    """Ours: a byte order mark or an old charset loses nothing; scalars are structure too."""
    assert _result(200, kind, body)["structuredContent"] == structure


@pytest.mark.parametrize(
    "kind",
    ["application/x-ndjson", "text/event-stream", "application/yaml", "text/csv", "image/svg+xml", "application/xml"],
)
def test_readable_formats_are_text(kind: str) -> None:
    """Ours: streams of lines, tables and markup are text as they are."""
    assert _result(200, kind, b"data: 1\n\ndata: 2\n")["content"] == [{"type": "text", "text": "data: 1\n\ndata: 2\n"}]


def test_a_lone_surrogate_is_no_structure() -> None:
    """Ours: JSON that a strict client could not read is shown as text."""
    assert "structuredContent" not in _result(200, "application/json", b'{"a":"\\ud800"}')


def test_a_redirect_names_the_host_and_nothing_else() -> None:
    """Ours: where it would have gone is worth knowing, what else the URL holds is not."""
    answer = UpstreamResponse(
        status=302, content_type="", body=b"", location="https://user:pw@evil.example/cb?token=secret"
    )
    result = json.loads(b"{" + result_rendering.content(answer) + b"}")

    reported = "The upstream redirects to evil.example; redirects are not followed."
    assert result["content"][0]["text"] == f"HTTP 302 Found\n{reported}"
    assert "secret" not in json.dumps(result)


def test_a_retry_hint_is_one_short_line() -> None:
    """Ours: a header of the upstream adds no lines to what the model reads."""
    text = _result(429, "text/plain", b"slow", retry_after="1\t2 " + "x" * 500)["content"][0]["text"]

    assert len(text.splitlines()[1]) < 100


def _many(count: int) -> bytes:
    return json.dumps({"items": [{"id": number, "name": "x" * 50} for number in range(count)], "next": "n"}).encode()


def test_a_large_result_is_cut_in_text_and_structure_alike() -> None:
    """Ours: a result has a bound, and names the omission."""
    result = _result(200, "application/json", _many(10_000))
    [shown, note] = result["content"]

    assert len(shown["text"].encode()) <= MAX_TEXT_BYTES
    assert json.loads(shown["text"]) == result["structuredContent"]
    assert result["structuredContent"]["next"] == "n"
    assert "/items: the first" in note["text"]
    assert list(result)[-1] == "isError"


def test_of_very_many_parts_only_the_start_is_read() -> None:
    """Ours: the check of 9.4 MiB would hold the interpreter lock for 50 ms, so what is left out is not read (ISO-3)."""
    body = b'{"items":[' + b"{}," * 400_000 + b"\xff is no JSON"
    answer = UpstreamResponse(status=200, content_type="application/json", body=body)
    result = json.loads(b"{" + result_rendering.content(answer) + b"}")

    assert result["structuredContent"]["items"][-1] == {}
    assert "of 1,200,022 bytes are shown" in result["content"][1]["text"]


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":1,"b":2}\n' * 400_000,
        b"1,2,3\n" * 400_000,
        b"x" * 4 * MAX_TEXT_BYTES + b",1" * 400_000,
        b'{"a":[' + b"\xff,1" * 400_000,
        b"[1,1,]" * 400_000,
    ],
)
def test_broken_json_is_text_at_any_size(body: bytes) -> None:
    """Ours: a start is structured content only if it is JSON; otherwise all of it is checked (CAL-1)."""
    answer = UpstreamResponse(status=200, content_type="application/json", body=body)
    result = json.loads(b"{" + result_rendering.content(answer) + b"}")

    assert "structuredContent" not in result
    assert result["content"][0]["text"].encode()[:2] == body[:2]


class _Stored:
    """Keeps results in memory."""

    def __init__(self, *, is_away: bool = False) -> None:
        self.kept: list[tuple[str, str, str, bytes]] = []
        self._is_away = is_away

    async def keep(self, tenant: TenantId, owner: str, content_type: str, body: bytes) -> str:
        """The number of what is kept."""
        if self._is_away:
            raise RedisUnavailable("away")
        self.kept.append((tenant, owner, content_type, body))
        return f"gateway+result://{len(self.kept)}"


ANNA = Principal(
    tenant=TenantId("ten_acme"),
    slug="acme",
    key=KeyId("key_1"),
    subject="anna",
    scopes=frozenset({Scope.MCP}),
)


class _Owner:
    """A call of Anna."""

    principal = ANNA
    result_owner = "anna"


async def _shaped(stored: _Stored, kind: str, body: bytes) -> dict[str, Any]:
    answer = UpstreamResponse(status=200, content_type=kind, body=body)
    members = await result_rendering.ResultRenderer(stored).content(_Owner(), answer, is_kept=True, is_whole=False)
    result: dict[str, Any] = json.loads(b"{" + members + b"}")
    return result


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", _many(10_000)),
        ("text/csv", b"a,b\n" * 100_000),
        ("application/pdf", b"%PDF\xff\x00" * 300_000),
        ("image/png", b"\x89PNG\xff" * 300_000),
    ],
)
async def test_a_cut_result_has_a_link_to_the_whole(kind: str, body: bytes) -> None:
    """MCP: a resource link leads to all of it; text that names it too, for clients that know no links."""
    stored = _Stored()
    result = await _shaped(stored, kind, body)

    assert stored.kept == [("ten_acme", "anna", kind, body)]
    [link] = [block for block in result["content"] if block["type"] == "resource_link"]
    assert (link["uri"], link["mimeType"], link["size"]) == ("gateway+result://1", kind, len(body))
    assert any("gateway+result://1" in block.get("text", "") for block in result["content"])
    assert result["isError"] is False
    assert sum(len(block.get("text", "")) for block in result["content"]) <= MAX_TEXT_BYTES + 1000


@pytest.mark.parametrize(
    ("kind", "body"), [("application/json", b"[1]"), ("application/pdf", b"%PDF\xff\x00" * 50_000)]
)
async def test_a_whole_result_is_not_stored(kind: str, body: bytes) -> None:
    """Ours: only what is cut is kept elsewhere."""
    stored = _Stored()
    await _shaped(stored, kind, body)

    assert stored.kept == []


async def test_without_a_place_to_keep_it_the_result_is_cut_all_the_same() -> None:
    """Ours: Redis away costs the link, not the call (SRV-4)."""
    result = await _shaped(_Stored(is_away=True), "text/plain", b"x\n" * 200_000)

    assert [block["type"] for block in result["content"]] == ["text", "text"]


def test_an_integer_without_end_fails_with_its_limit() -> None:
    """Ours: an upstream's number beyond what Python reads is an error of the call, not of the gateway (CAL-4)."""
    digits = b"9" * 4_300
    assert result_rendering.decode(b'"a":' + digits)["a"] == int(digits)
    with pytest.raises(HandlerFailed, match="4,300 digits"):
        result_rendering.decode(b'"a":9' + digits)
