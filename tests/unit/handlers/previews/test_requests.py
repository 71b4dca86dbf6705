"""Requests as a person reads them before confirming: whole, bounded, without credentials, and nothing that misleads."""

import json
from urllib.parse import quote

import pytest

from gateway.domain.http.requests import Credential, UpstreamRequest
from gateway.domain.identifiers import TenantId
from gateway.handlers.previews.limits import MAX_PREVIEW_LENGTH
from gateway.handlers.previews.requests import blank_members, escape, finish, show_request
from gateway.handlers.redaction.redaction import Redaction

ACME = TenantId("ten_acme")


def _shown(body: bytes, content_type: str, *headers: tuple[str, str], url: str = "https://api/x") -> list[str]:
    sent = (("Content-Type", content_type), *headers)
    first, *lines = show_request(UpstreamRequest(method="POST", url=url, headers=sent, body=body)).splitlines()
    assert first.startswith("POST https://api/x")
    return [first, *lines]


@pytest.mark.parametrize(
    ("body", "content_type", "shown"),
    [
        (b'{"a":1,"api_key":"k","n":{"Authorization" : "Basic x"}}', "application/json", ["***", "Authorization"]),
        (b"a=1&client_secret=k&b=2", "application/x-www-form-urlencoded", ["a=1&client_secret=***&b=2"]),
        (b"my token=k & more", "text/plain", ["my token=k & more"]),
        (b'{"max_tokens": 5, "token": 7}', "application/json", ['{"max_tokens": 5, "token": 7}']),
        (
            b'{"token":\n "k", "api_keys": ["k", {"b": "k2"}, "k"], "c": ["d"]}',
            "application/json",
            ['{"token":\\n "***"', '["***", {"b": "k2"}, "***"], "c": ["d"]'],
        ),
        (b"<a>\nPOST https://other</a>", "application/xml", ["<a>\\nPOST https://other</a>"]),
        ("año \u202e x \u200b".encode(), "text/plain", ["año \\u202e x \\u200b"]),
        ("\u3164 e\u2800\ufe0f".encode(), "text/plain", ["\\u3164 e\\u2800\\ufe0f"]),
        (b"\x89PNG\r\n\x1a\n\x00", "image/png", ["(9 bytes that are not text)"]),
        (b"\xff" * 5_000, "application/octet-stream", ["(5000 bytes that are not text)"]),
    ],
)
def test_a_body_is_shown_as_it_is_sent(body: bytes, content_type: str, shown: list[str]) -> None:
    """Ours: one line, escaped; only texts that are named like credentials are blanked, so nothing hides behind a name
    of the caller's in a body that has no names (SAF-2).
    """
    *_, line = _shown(body, content_type)

    assert all(text in line for text in shown)
    assert '"k"' not in line
    assert "Basic x" not in line


def test_each_part_of_a_form_is_shown() -> None:
    """Ours: a file that is not text hides no field behind it (SAF-2)."""
    begins = b"--b\r\nContent-Disposition: form-data; "
    parts = (
        begins + b'name="file"; filename="x"\r\nContent-Type: image/png\r\n\r\n\x00\xff\r\n',
        begins + b'name="note"\r\n\r\ndelete all\r\n',
        begins + b'name="password"\r\n\r\nhunter2\r\n--b--\r\n',
    )
    lines = _shown(b"".join(parts), 'multipart/form-data; boundary="b"')

    assert [line.rpartition(": ")[2] for line in lines[-3:]] == ["(2 bytes that are not text)", "delete all", "***"]
    assert 'name="note"' in lines[-2]


@pytest.mark.parametrize("padding", [1, 7, 1000, 100_000])
@pytest.mark.parametrize("unit", ["x", '\\"', "\\\\", "\u202e", '","token":"'])
def test_the_end_of_a_padded_body_is_shown_without_credentials(padding: int, unit: str) -> None:
    """Ours: padding hides no member from a person, and no credential is shown in the end (SAF-2, SAF-3)."""
    members = {"to": "bo", "pad": unit * (padding // len(unit)), "tokens": ["hunter2"], "n": {"password": "hunter2"}}
    written = json.dumps({**members, "amount": 9_000_000, "delete": "all", "keys": "visible"}, ensure_ascii=False)
    *_, line = _shown(written.replace(": ", ":").encode(), "application/json")

    assert '"to":"bo"' in line
    assert '"amount":9000000' in line
    assert line.endswith('"delete":"all", "keys":"visible"}')
    assert "hunter2" not in line
    assert len(line) < 4_200

    for name, is_shown in (("sql", True), ("password", False)):
        *_, line = _shown(json.dumps({name: unit * (padding // len(unit)) + "; drop it"}).encode(), "application/json")
        assert line.endswith('; drop it"}') is is_shown
        assert is_shown or "drop" not in line

    form = f"to=bo&pad={quote(unit) * (padding // len(unit))}&client_secret=hunter2&amount=9"
    *_, line = _shown(form.encode(), "application/x-www-form-urlencoded")
    assert line.endswith("client_secret=***&amount=9")
    *_, line = _shown(b"a=1&token=" + b"hunter2" * padding, "application/x-www-form-urlencoded")
    assert "hunter2" not in line


def test_the_last_parts_of_a_form_are_shown() -> None:
    """Ours: many parts hide neither the first nor the last ones (SAF-2)."""
    part = b'--b\r\nContent-Disposition: form-data; name="p%d"\r\n\r\nv%d\r\n'
    body = b"".join(part % (number, number) for number in range(50)) + b"--b--\r\n"
    lines = _shown(body, 'multipart/form-data; boundary="b"')

    assert [line.rpartition(": ")[2] for line in lines if "form-data;" in line][1:] == [
        f"v{number}" for number in (*range(10), *range(40, 50))
    ]
    assert lines[-1] == "and 30 further parts"


def test_many_long_headers_are_bounded() -> None:
    """Ours: the question stays readable whatever is in it; what is left out is counted (SAF-2)."""
    headers = [(f"X-{number}", "v" * 9_000) for number in range(40)]
    lines = _shown(b"x", "text/plain", *headers, url="https://api/x?" + "q" * 9_000)

    assert "and 21 further headers" in lines
    assert all(len(line) < 2_100 for line in lines)


@pytest.mark.parametrize(
    "text",
    [
        '\\"' * 200_000,
        '"' + '\\"' * 200_000 + "\\",
        '"' * 400_000,
        '"a":' * 100_000,
        '"' + "token" * 80_000,
        '"a"' + " " * 400_000,
    ],
)
def test_no_text_is_looked_through_twice(text: str) -> None:
    """Ours: quotes in any order cost one pass; looked at again and again they would cost hours (CAL-4)."""
    assert len(blank_members(text)) == len(text)


def test_a_text_without_an_end_is_blanked_to_its_end() -> None:
    """Ours: where a body is cut within a credential, nothing of it is shown (TEN-4)."""
    assert blank_members('{"token": "abc') == '{"token": "***"'
    assert blank_members('{"token": "abc\\') == '{"token": "***"'
    assert blank_members('{"a": "token", "b": "c"}') == '{"a": "token", "b": "c"}'


async def test_a_stored_credential_is_blanked_in_every_place() -> None:
    """Ours: a caller that knows a stored credential cannot have it shown, encoded or not (TEN-4)."""
    held = (Credential(value="s3cr3t-value", username="bo"),)
    shown = await finish(ACME, "GET https://api/x?q=s3cr3t%2Dvalue\n\ns3cr3t-value", Redaction(), held)

    assert "s3cr3t" not in shown
    assert len(await finish(ACME, "x" * 100_000, Redaction(), ())) < MAX_PREVIEW_LENGTH + 50
    assert escape("a\ud800") == "a\\ud800"
