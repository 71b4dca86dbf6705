"""Requests as a person reads them before confirming: whole, bounded, without credentials, and nothing that misleads."""

import pytest

from gateway.domain.http.requests import Credential, UpstreamRequest
from gateway.domain.identifiers import TenantId
from gateway.handlers.previews.requests import MAX_PREVIEW_LENGTH, blank_members, escape, finish, show_request
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


def test_many_long_headers_are_bounded() -> None:
    """Ours: the question stays readable whatever is in it; what is left out is counted (SAF-2)."""
    headers = [(f"X-{number}", "v" * 9_000) for number in range(40)]
    lines = _shown(b"x", "text/plain", *headers, url="https://api/x?" + "q" * 9_000)

    assert "and 21 further headers" in lines
    assert all(len(line) < 2_100 for line in lines)


@pytest.mark.parametrize(
    "text", ['\\"' * 200_000, '"' * 400_000, '"a":' * 100_000, '"' + "token" * 80_000, '"a"' + " " * 400_000]
)
def test_no_text_is_looked_through_twice(text: str) -> None:
    """Ours: quotes in any order cost one pass; looked at again and again they would cost hours (CAL-4)."""
    assert len(blank_members(text)) == len(text)


def test_a_text_without_an_end_is_blanked_to_its_end() -> None:
    """Ours: where a body is cut within a credential, nothing of it is shown (TEN-4)."""
    assert blank_members('{"token": "abc') == '{"token": "***"'
    assert blank_members('{"a": "token", "b": "c"}') == '{"a": "token", "b": "c"}'


async def test_a_stored_credential_is_blanked_wherever_it_stands() -> None:
    """Ours: a caller that knows a stored credential cannot have it shown, encoded or not (TEN-4)."""
    held = (Credential(value="s3cr3t-value", username="bo"),)
    shown = await finish(ACME, "GET https://api/x?q=s3cr3t%2Dvalue\n\ns3cr3t-value", Redaction(), held)

    assert "s3cr3t" not in shown
    assert len(await finish(ACME, "x" * 100_000, Redaction(), ())) < MAX_PREVIEW_LENGTH + 50
    assert escape("a\ud800") == "a\\ud800"
