"""Results that are sent once."""

import json
from typing import Any

import pytest

from gateway.calls import result_rendering
from gateway.calls.output_checks import encode
from gateway.calls.structured_once import replace_duplicate_text, summarise
from gateway.domain.http.requests import UpstreamResponse
from gateway.domain.results import Result

LONG: dict[str, Any] = {"a": ['é\u0001"\\/\u2028🐘'] * 50, 'x"],"structuredContent":': {"isError": False}, "n": 1.5}


def rendered(value: Any, *, status: int = 200, **more: Any) -> bytes:
    """The members of the result of a response with this JSON."""
    body = json.dumps(value).encode()
    return result_rendering.content(UpstreamResponse(status=status, content_type="application/json", body=body, **more))


def sent(members: bytes, *, is_modern: bool = True) -> dict[str, Any]:
    """The result as it is sent."""
    found: dict[str, Any] = json.loads(b"{" + replace_duplicate_text(members, is_modern=is_modern) + b"}")
    return found


@pytest.mark.parametrize("is_modern", [True, False])
def test_a_text_that_repeats_structured_content_becomes_a_sentence(is_modern: bool) -> None:
    """Ours: structured content is unchanged, and the text has its shape (OAS-10)."""
    found = sent(rendered(LONG), is_modern=is_modern)

    assert found["structuredContent"] == LONG
    [block] = found["content"]
    assert block["text"].endswith(
        'in structured content: an object with a (array of 50), x"],"structuredContent": (object), n (number).'
    )


def test_results_of_handlers_are_sent_once_too() -> None:
    """Ours: also those that handlers return as structure alone (OAS-10)."""
    found = sent(encode(Result(structured=LONG, meta={"a": 1}))[0])

    assert found["content"][0]["text"].startswith("The result is ")
    assert found["_meta"] == {"a": 1}


def test_other_texts_stay() -> None:
    """Ours: text beside structured content is not lost (OAS-10)."""
    own = encode(Result(content=[{"type": "text", "text": "Done. " * 100}], structured=LONG))[0]
    created = rendered(LONG, status=201, headers=(("location", "/pets/7"),))

    assert replace_duplicate_text(own, is_modern=True) == own
    assert sent(created)["content"][1]["text"].endswith("Location: /pets/7")
    assert "structuredContent" in sent(created)


@pytest.mark.parametrize("value", [{"a": 1}, ["x" * 300], "x" * 300])
def test_small_results_and_lists_of_older_revisions_stay(value: Any) -> None:
    """MCP: before 2026-07-28 structured content is an object, so the text of a list is all there is (OAS-10)."""
    members = rendered(value)

    assert replace_duplicate_text(members, is_modern=False) == members


def test_errors_stay() -> None:
    """Ours: an error is read by models (OAS-10)."""
    members = encode(Result(structured=LONG, is_error=True))[0]

    assert replace_duplicate_text(members, is_modern=True) == members


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ([1, 2], "an array of 2"),
        ({f"m{number}": None for number in range(40)}, "m7 (null) and 32 more"),
        ({"\u202e" + "n" * 500: True}, f"an object with {'n' * 39} (true)"),
        ("x", "a string"),
    ],
)
def test_a_sentence_has_the_shape_of_the_result(value: Any, shape: str) -> None:
    """Ours: bounded, and names without what is not printable (OAS-10)."""
    assert summarise(json.dumps(value).encode()).endswith(f"{shape}.")


@pytest.mark.parametrize(
    "raw", [b"[" + b"1," * 30_000 + b"1]", b'"' + b"x" * 300_000 + b'"', b"[" * 5000 + b"]" * 5000]
)
def test_large_results_have_their_size_only(raw: bytes) -> None:
    """Ours: a sentence costs no more than a small result (ISO-2)."""
    assert summarise(raw).startswith(f"The result is {len(raw):,} bytes of JSON")
    assert len(summarise(raw)) < 100
