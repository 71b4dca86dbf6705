"""Redaction under random secrets, nested encodings, and random context."""

import json
from collections.abc import Sequence
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.http.requests import Credential, UpstreamResponse
from gateway.handlers.redaction.redaction import Redactor
from tests.support.encodings import ENCODINGS, Encoding, Text

_OUTSIDE_BASE64 = [one for one in ENCODINGS if not one.name.startswith(("base64", "hex_spaced", "hex_upper", "quoted"))]
_ESCAPES = [one for one in _OUTSIDE_BASE64 if one.name != "hex"]
SECRETS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=12, max_size=48)
AROUND = st.text(st.sampled_from('abc XYZ 019 {}[]:,"<>\n\té漢🐘'), max_size=20)


def _embedded(text: str, before: str, after: str) -> list[tuple[str, bytes]]:
    inside = f"{before} {text} {after}"
    value: Any = {"n": [1.5, None, {"k": inside}], f"name {text}": True}
    return [
        ("application/json", json.dumps(value).encode()),
        ("application/json", json.dumps(value, ensure_ascii=False, indent=1).encode()),
        ("text/plain", inside.encode()),
        ("text/event-stream", f"data: {inside}\n\n".encode()),
    ]


def _all_texts(kind: str, body: bytes) -> str:
    if kind != "application/json":
        return body.decode()

    def walk(value: Any) -> list[str]:
        if isinstance(value, dict):
            return [text for name, member in cast("dict[str, Any]", value).items() for text in (name, *walk(member))]
        if isinstance(value, list):
            return [text for member in cast("Sequence[Any]", value) for text in walk(member)]
        return [str(value)]

    return "\n".join(walk(json.loads(body)))


@settings(max_examples=60)
@given(SECRETS, st.sampled_from(ENCODINGS), st.sampled_from(_ESCAPES), AROUND, AROUND)
def test_no_composition_of_two_encodings_can_be_decoded(
    secret: str, inner: Encoding, outer: Encoding, before: str, after: str
) -> None:
    """Ours: one encoding, and one inside an escape, in any place of JSON or text (ISO-4)."""
    redactor = Redactor((Credential(value=secret),))

    def undo(shown: str) -> str:
        return inner.decode(outer.decode(shown))

    rows: tuple[tuple[str, Text], ...] = (
        (inner.encode(secret), inner.decode),
        (outer.encode(inner.encode(secret)), undo),
    )
    for text, decode in rows:
        for kind, body in _embedded(text, before, after):
            redacted = redactor.redact(UpstreamResponse(status=200, content_type=kind, body=body)).body

            shown = _all_texts(kind, redacted)
            assert secret not in shown
            assert secret not in decode(shown)


@settings(max_examples=50)
@given(st.binary(max_size=400), SECRETS)
def test_bytes_without_the_secret_stay(body: bytes, secret: str) -> None:
    """Ours: a text without a credential is not touched (ISO-4)."""
    for kind in ("application/json", "text/plain", "image/png"):
        answer = UpstreamResponse(status=200, content_type=kind, body=body)
        assert Redactor((Credential(value=secret),)).redact(answer).body == body
