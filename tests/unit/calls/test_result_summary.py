"""Summaries of large results: results that summaries replace, results that stay, and the behaviour without a store."""

import json
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from gateway.calls.result_rendering import ResultRenderer, content
from gateway.calls.result_summary import Summaries
from gateway.definitions.large_results.document import read_document
from gateway.definitions.large_results.pages import PartRequest, read_part
from gateway.domain.http.requests import UpstreamResponse
from gateway.domain.identifiers import TenantId
from gateway.handlers.response_body.result_processes import ResultProcesses

ACME = TenantId("ten_acme")
LIMIT = 256 * 1024
ITEMS = {"items": [{"id": number, "name": "x" * 20} for number in range(1000)], "total": 1000}


class _Stored:
    """Keeps documents in memory."""

    def __init__(self, *, is_full: bool = False) -> None:
        self.kept: list[tuple[str, bytes]] = []
        self._is_full = is_full

    async def keep(self, content_type: str, body: bytes) -> str | None:
        """The number of what is kept."""
        if self._is_full:
            return None
        self.kept.append((content_type, body))
        return f"gateway+result://{len(self.kept)}"


async def _summary(results: _Stored, members: bytes, threshold: int = 4096) -> dict[str, Any]:
    found = await Summaries(ResultProcesses(), limit=LIMIT).summarise(ACME, members, threshold, results.keep)
    result: dict[str, Any] = json.loads(b"{" + found + b"}")
    return result


def _answer(body: bytes, kind: str = "application/json", **more: Any) -> UpstreamResponse:
    return UpstreamResponse(status=200, content_type=kind, body=body, **more)


async def test_json_becomes_an_outline_and_its_start() -> None:
    """Ours: shape, counts and first items, with the place of the whole (OAS-10)."""
    results = _Stored()
    result = await _summary(results, content(_answer(json.dumps(ITEMS).encode())))

    [text, link] = result["content"]
    assert "structuredContent" not in result
    assert json.loads(results.kept[0][1]) == ITEMS
    assert results.kept[0][0] == "application/json"
    assert "/items: array of 1,000" in text["text"]
    assert "/items/*/id: number" in text["text"]
    assert '{"items":[{"id":0,"name":' in text["text"]
    assert len(text["text"].encode()) <= 4096
    assert link["uri"] == "gateway+result://1"
    assert link["uri"] in text["text"]
    assert link["size"] == len(results.kept[0][1])


async def test_small_results_and_errors_stay() -> None:
    """Ours: a result below the threshold, and a failure, is sent unchanged."""
    results = _Stored()
    small = content(_answer(b'{"a":1}'))
    failed = b'"content":[{"type":"text","text":"' + b"x" * 9000 + b'"}],"isError":true'

    for members in (small, failed):
        assert await Summaries(ResultProcesses(), limit=LIMIT).summarise(ACME, members, 4096, results.keep) == members
    assert results.kept == []


async def test_notes_images_and_meta_stay() -> None:
    """Ours: a summary replaces what is large, and nothing beside it."""
    results = _Stored()
    structured = json.dumps(ITEMS, separators=(",", ":"))
    image = {"type": "image", "data": "A" * 9000, "mimeType": "image/png"}
    blocks = [{"type": "text", "text": structured}, {"type": "text", "text": "a note"}, image]
    members = b'"content":' + orjson.dumps(blocks) + b',"structuredContent":' + structured.encode()
    result = await _summary(results, members + b',"isError":false,"_meta":{"a":"]"}')

    assert [block["type"] for block in result["content"]] == ["text", "resource_link", "text", "image"]
    assert result["content"][2:] == [blocks[1], image]
    assert result["_meta"] == {"a": "]"}
    assert result["isError"] is False


async def test_every_large_text_has_its_own_summary() -> None:
    """Ours: JSON that arrives as text alone has an outline too; other text has its number of lines (OAS-10)."""
    results = _Stored()
    blocks = [json.dumps(ITEMS), "a,b\n" * 5000, *("x" * 5000 for _ in range(4))]
    members = b'"content":' + orjson.dumps([{"type": "text", "text": text} for text in blocks]) + b',"isError":false'
    result = await _summary(results, members)

    texts = [block["text"] for block in result["content"] if block["type"] == "text"]
    assert "/items: array of 1,000" in texts[0]
    assert "text of 5,000 lines" in texts[1]
    assert [kind for kind, _ in results.kept] == ["application/json", *["text/plain"] * 3]
    assert results.kept[1][1].decode() == blocks[1]
    assert texts[4:] == blocks[4:]  # at most four documents of one result


async def test_the_documents_of_one_result_leave_room_for_one_another() -> None:
    """Ours: a result for which the owner has no room beside the other documents is cut, so the first link works
    (OAS-10).
    """
    results = _Stored()
    blocks = [{"type": "text", "text": "x" * size} for size in (9_000_000, 9_000_000, 9_000_000, 5000)]
    result = await _summary(results, b'"content":' + orjson.dumps(blocks) + b',"isError":false')

    assert [len(body) for _, body in results.kept] == [9_000_000, 9_000_000, 5000]
    assert "could not be stored" in result["content"][5]["text"]


@pytest.mark.parametrize("body", [json.dumps(ITEMS).encode(), b"line\n" * 100_000])
async def test_without_a_place_the_result_is_cut(body: bytes) -> None:
    """Ours: a result that cannot be stored is cut as before, and states it."""
    kind = "application/json" if body.startswith(b"{") else "text/plain"
    result = await _summary(_Stored(is_full=True), content(_answer(body, kind), is_whole=True))

    [shown, note] = result["content"]
    assert len(shown["text"].encode()) <= LIMIT
    assert "could not be stored" in note["text"]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (json.dumps({"a": [{"n": number} for number in range(50_000)]}).encode(), "application/json"),
        (b'{"a":1,"a":"' + b"x" * 400_000 + b'"}', "application/json"),
        (b"line\n" * 100_000, "text/csv"),
        ("é".encode("latin-1") * 400_000, "text/plain; charset=latin-1"),
    ],
)
async def test_nothing_of_a_large_answer_is_lost(body: bytes, kind: str) -> None:
    """Ours: an answer above the size limit of results is stored whole, members of one name included (OAS-10)."""
    results = _Stored()

    class _Owner:
        principal: Any = SimpleNamespace(tenant=ACME)
        result_owner = "anna"

    answer = _answer(body, kind, headers=(("x-total-count", "7"),))
    members = await ResultRenderer().content(_Owner(), answer, is_kept=True, is_whole=True)
    result = await _summary(results, members)

    [(_, stored)] = results.kept
    assert stored.decode() == body.decode("latin-1" if "latin" in kind else "utf-8").replace(" ", "")
    assert result["_meta"]["gateway/upstream"]["headers"] == {"x-total-count": "7"}
    assert sum(len(orjson.dumps(block)) for block in result["content"]) < 4096 * 1.5


@pytest.mark.parametrize("depth", [200, 900, 960, 990, 1100])
async def test_no_depth_breaks_a_summary(depth: int) -> None:
    """Ours: a value that is deeper than the parser reads is a text, and the same in every read (OAS-10)."""
    results = _Stored()
    body = b'{"a":' * depth + b'"' + b"x" * 300_000 + b'"' + b"}" * depth
    result = await _summary(results, content(_answer(body), is_whole=True))

    [(_, stored)] = results.kept
    assert stored == body
    assert [block["type"] for block in result["content"]] == ["text", "resource_link"]
    document = read_document(stored)
    assert document is not None
    assert len(read_part(document, PartRequest(), room=4096)) <= 4096 + 1024
