"""Checks of large results against output schemas: what remains of a violation, and where the check runs."""

import json
import threading
from typing import Any

import pytest

from gateway.calls.arguments.costly_validation import CostlyValidation
from gateway.calls.limits import MAX_TEXT_BYTES
from gateway.calls.output_checks import ResultChecks, check_contents
from gateway.calls.result_plan import WHOLE_START
from gateway.calls.result_rendering import content
from gateway.definitions.json_schema.validator import DeferredCheck, Validator
from gateway.domain.http.requests import UpstreamResponse
from gateway.domain.identifiers import TenantId
from gateway.domain.results import Contents
from gateway.errors import Fault

ACME = TenantId("ten_acme")
LARGE = 2 * 1024 * 1024


class _TracedValidator(Validator):
    """A validator that records the threads that use it."""

    def __init__(self) -> None:
        super().__init__(json.dumps({"outputSchema": {"type": "object"}}).encode(), "outputSchema")
        self.threads: set[int] = set()

    def check_text(self, raw: bytes) -> tuple[Fault, ...] | DeferredCheck:
        """Check, and record the thread."""
        self.threads.add(threading.get_ident())
        return super().check_text(raw)


def _answer(body: bytes = b"x", kind: str = "", status: int = 200) -> UpstreamResponse:
    return UpstreamResponse(status=status, content_type=kind, body=body)


def _rendered(body: bytes, kind: str) -> bytes:
    return content(_answer(body, kind), is_whole=True, has_schema=True)


async def _checked(members: bytes) -> tuple[int, dict[str, Any]]:
    results = ResultChecks(CostlyValidation())
    found = await results.check_upstream_result(ACME, _TracedValidator(), members, _answer(status=201))
    result: dict[str, Any] = json.loads(b"{" + found + b"}")
    return len(found), result


@pytest.mark.parametrize(
    ("start", "repeated", "kind"),
    [(b"", b"\x01", "text/plain"), (b"{", b"\x01", "application/json"), (b"", b"x\n", "")],
    ids=["text", "broken JSON", "untyped"],
)
def test_a_text_is_not_whole_beside_an_output_schema(start: bytes, repeated: bytes, kind: str) -> None:
    """Ours: it cannot conform, and an error result is not summarised, so it is cut at once (TDF-5)."""
    assert len(_rendered(start + repeated * LARGE, kind)) < MAX_TEXT_BYTES * len(r"\u0001") + 1024


@pytest.mark.parametrize(("start", "repeated"), [("", "\x01"), ("", "é😀"), ("", 'a"\\'), ("a", "é")])
async def test_a_violation_has_the_start_of_a_large_text(start: str, repeated: str) -> None:
    """Ours: whatever a hostile upstream sends, an error is not larger than a text may be (TDF-5)."""
    text = start + repeated * LARGE
    members = b'"content":' + json.dumps([{"type": "text", "text": text}], ensure_ascii=False).encode()
    size, result = await _checked(members.replace(b": ", b":").replace(b", ", b",") + b',"isError":false')

    assert result["_meta"]["gateway/error"]["code"] == "call.output_invalid"
    assert result["content"][0]["text"].startswith("the upstream answered 201: the call was done; the result has no")
    assert text.startswith(result["content"][1]["text"])
    assert MAX_TEXT_BYTES - 1024 < size < MAX_TEXT_BYTES + 1024


async def test_a_violation_has_no_large_picture() -> None:
    """Ours: an image of megabytes is no part of an error (TDF-5)."""
    size, result = await _checked(_rendered(b"\x89PNG\xff" * LARGE, "image/png"))

    assert (len(result["content"]), result["isError"]) == (1, True)
    assert size < 1024


async def test_large_structured_content_is_checked_in_a_thread() -> None:
    """Ours: parsing ten megabytes does not hold up the event loop (ISO-2)."""
    results, small, large = ResultChecks(CostlyValidation()), _TracedValidator(), _TracedValidator()
    structured = b'{"a":"' + b"x" * LARGE + b'"}'
    members = WHOLE_START + structured + b',"isError":false'

    assert await results.check_upstream_result(ACME, large, members, _answer()) == members
    await results.check_structured(ACME, small, b"{}")
    assert small.threads == {threading.get_ident()}
    assert len(large.threads - small.threads) == 1


async def test_large_contents_are_checked_in_a_thread() -> None:
    """Ours: base64 of megabytes is decoded and encoded beside the event loop (ISO-2)."""
    threads: set[int] = set()

    class _Bound:
        tenant = ACME
        uri = "gateway+result://x"

        @property
        def mime_type(self) -> None:
            threads.add(threading.get_ident())

    for size in (16, LARGE):
        item = {"uri": _Bound.uri, "mimeType": "a/b", "blob": "A" * size}
        found: Any = await check_contents(Contents(contents=(item,)), _Bound())  # type: ignore[arg-type]  # a part of it
        assert found[0].contents == (item,)
        assert (threading.get_ident() in threads) is (size == 16)
        threads.clear()
