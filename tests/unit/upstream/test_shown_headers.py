"""The headers of a response that a result shows."""

import asyncio

import pytest

from gateway.upstream.http.response import Response
from gateway.upstream.shown_headers import read_shown_headers


class _Line:
    """A connection that is never read."""

    def resume(self) -> None:
        """Resume nothing."""

    def release(self, response: Response) -> None:
        """Release nothing."""

    def abort(self) -> None:
        """Abort nothing."""


def shown(*pairs: tuple[bytes, bytes], status: int = 200, has_body: bool = True) -> dict[str, str]:
    """The shown headers of a response with these."""
    loop = asyncio.new_event_loop()
    response = Response(_Line(), loop.create_future(), has_no_body=not has_body)
    response.begin(status, pairs)
    loop.close()
    return dict(read_shown_headers(response, has_body=has_body))


def test_only_chosen_headers_are_shown() -> None:
    """Ours: cookies and names of servers stay here (OAS-10)."""
    pairs = ((b"Set-Cookie", b"s=1"), (b"Server", b"x"), (b"X-Total-Count", b"9"), (b"Content-Length", b"2"))

    assert shown(*pairs) == {"x-total-count": "9"}
    assert shown(*pairs, has_body=False) == {"x-total-count": "9", "content-length": "2"}
    assert shown((b"Content-Length", b"0"), has_body=False) == {}


def test_limits_of_requests_and_tokens_are_shown() -> None:
    """Ours: APIs of models count requests and tokens apart (OAS-10)."""
    pairs = ((b"X-RateLimit-Remaining-Requests", b"59"), (b"x-ratelimit-reset-tokens", b"6m0s"))

    assert shown(*pairs) == {"x-ratelimit-remaining-requests": "59", "x-ratelimit-reset-tokens": "6m0s"}


def test_several_links_are_one() -> None:
    """RFC 8288: Link is a list, so several fields are joined (OAS-10)."""
    assert shown((b"Link", b"<a>; rel=next"), (b"link", b"<b>; rel=last")) == {"link": "<a>; rel=next, <b>; rel=last"}


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (b"https://me:secret@api.example/p?q=a@b", "https://api.example/p?q=a@b"),
        (b"//me:se@cret@api.example/p", "//api.example/p"),
        (b"https://api.example/p\x01\x7f\x1b[2J", "https://api.example/p[2J"),
        ("https://api.example/\u202e\u200b".encode(), "https://api.example/??"),
    ],
)
def test_urls_have_no_user_and_values_no_control_characters(value: bytes, kept: str) -> None:
    """Ours: a header of an upstream contains neither a password nor a command to a terminal (OAS-10)."""
    assert shown((b"Location", value), status=201) == {"location": kept}
    assert shown((b"Link", b"<" + value + b">; rel=next")) == {"link": f"<{kept}>; rel=next"}


def test_the_target_of_a_redirect_is_not_shown() -> None:
    """Ours: only its host is named, because its query may contain secrets (OAS-10)."""
    assert shown((b"Location", b"https://api.example/?sig=1"), (b"ETag", b'"a"'), status=302) == {"etag": '"a"'}
