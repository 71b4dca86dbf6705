"""Status and headers of a response in its result."""

import json
from typing import Any

import pytest

from gateway.calls import result_rendering
from gateway.domain.http.requests import UpstreamResponse

JSON = "application/json"


def result(status: int, body: bytes = b"", **headers: str) -> dict[str, Any]:
    """The result of a response with these headers."""
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    answer = UpstreamResponse(status=status, content_type=JSON if body else "", body=body, headers=named)
    found: dict[str, Any] = json.loads(b"{" + result_rendering.content(answer) + b"}")
    return found


def test_a_plain_response_adds_nothing() -> None:
    """Ours: most results have no `_meta` (OAS-10)."""
    assert "_meta" not in result(200, b'{"a":1}')


def test_headers_are_in_meta_beside_the_body() -> None:
    """Ours: paging and validators are there for programs; the text is the body alone (OAS-10)."""
    found = result(200, b"[1]", link="<https://api.example/?page=2>; rel=next", x_total_count="70")

    assert found["content"] == [{"type": "text", "text": "[1]"}]
    assert found["_meta"]["gateway/upstream"] == {
        "status": 200,
        "headers": {"link": "<https://api.example/?page=2>; rel=next", "x-total-count": "70"},
    }


@pytest.mark.parametrize("status", [201, 202])
@pytest.mark.parametrize(
    "body", [b'{"id":7,"x":"],\\"structuredContent\\":"}', b"[7]", b'{"a":1,"a":2}', b"null", b"{"]
)
def test_a_location_beside_a_body_is_a_text_too(status: int, body: bytes) -> None:
    """Ours: models see where the new resource or the running job is, whatever form the body has (OAS-10)."""
    plain, found = result(200, body), result(status, body, location="/jobs/7")

    assert found["content"][:-1] == plain["content"]
    assert found["content"][-1]["text"].endswith("\nLocation: /jobs/7")
    assert found.get("structuredContent") == plain.get("structuredContent")


def test_without_a_body_status_and_headers_are_the_text() -> None:
    """Ours: HEAD has type, length and validators; 201 has the place (OAS-10)."""
    assert result(200, content_type="image/png", content_length="70", etag='"a"')["content"][0]["text"] == (
        'HTTP 200 OK\nContent-Type: image/png\nContent-Length: 70\nETag: "a"'
    )
    assert result(201, location="/pets/7")["content"][0]["text"] == "HTTP 201 Created\nLocation: /pets/7"


def test_an_error_has_its_headers_in_meta() -> None:
    """Ours: a limit names its end, with an error too (OAS-10)."""
    found = result(429, b"{}", x_ratelimit_reset="60")

    assert found["isError"] is True
    assert found["_meta"]["gateway/upstream"] == {"status": 429, "headers": {"x-ratelimit-reset": "60"}}


def test_long_headers_are_cut() -> None:
    """Ours: a result holds 1,024 characters of a header, and about 8 kB of all (OAS-10)."""
    found = result(200, b"[]", **{f"x_{number:02}": "v" * 5000 for number in range(30)})
    headers = found["_meta"]["gateway/upstream"]["headers"]

    assert len(headers["x-00"]) == 1024
    assert sum(map(len, headers.values())) == 8 * 1024
