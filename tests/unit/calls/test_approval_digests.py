"""The digest that binds an approval to a prepared call."""

import pytest

from gateway.calls.approval import exact_digest
from gateway.domain.http.requests import UpstreamRequest
from gateway.handlers.interfaces import Prepared

REQUEST = UpstreamRequest(method="POST", url="https://a.example/x", headers=(("A", "b"),), body=b"c")


@pytest.mark.parametrize(
    "other",
    [
        UpstreamRequest(method="PUT", url="https://a.example/x", headers=(("A", "b"),), body=b"c"),
        UpstreamRequest(method="POST", url="https://a.example/y", headers=(("A", "b"),), body=b"c"),
        UpstreamRequest(method="POST", url="https://a.example/x", headers=(("A", "c"),), body=b"c"),
        UpstreamRequest(method="POST", url="https://a.example/x", headers=(("A", "b"), ("A", "b")), body=b"c"),
        UpstreamRequest(
            method="POST", url="https://a.example/x", headers=(), body=b"\x00\x00\x00\x01A\x00\x00\x00\x01bc"
        ),
        UpstreamRequest(method="POST", url="https://a.example/x", headers=(("A", "b"),), body=b"d"),
        UpstreamRequest(method="POST", url="https://a.example/x", headers=(("A", "b"),)),
    ],
)
def test_any_other_request_has_another_digest(other: UpstreamRequest) -> None:
    """Ours: method, URL, headers and body are covered with their lengths, whatever digest the handler made (SAF-3)."""
    assert exact_digest(Prepared(digest=b"d", request=other)) != exact_digest(Prepared(digest=b"d", request=REQUEST))


def test_no_body_is_not_an_empty_one() -> None:
    """Ours: a body of one line feed once had the digest of no body."""
    digests = {
        exact_digest(Prepared(digest=b"d", request=UpstreamRequest(method="POST", url="https://a", body=body)))
        for body in (None, b"", b"\n")
    }
    assert len(digests) == 3


def test_the_digest_of_the_handler_counts() -> None:
    """Ours: a call that is no single request is covered by definition, handler and arguments."""
    assert exact_digest(Prepared(digest=b"d")) != exact_digest(Prepared(digest=b"e"))
    assert exact_digest(Prepared(digest=b"d", request=REQUEST)) == exact_digest(Prepared(digest=b"d", request=REQUEST))
