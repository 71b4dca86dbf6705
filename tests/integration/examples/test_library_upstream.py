"""The example's service over a real socket, judged by its own document."""

from collections.abc import Generator
from pathlib import Path

import httpx
import jsonschema_rs
import pytest
import yaml

from examples.library.upstream import Library, build_upstream
from examples.serving import serving

_DOCUMENT = Path(__file__).parents[3] / "examples" / "library" / "openapi.yaml"


@pytest.fixture
def library() -> Generator[httpx.Client]:
    """A client of a fresh library on a free port."""
    with (
        serving(build_upstream(Library()), port=0) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as client,
    ):
        yield client


def _check(answer: httpx.Response, path: str, method: str) -> None:
    """The status is documented and the body is of its media type and schema."""
    document = yaml.safe_load(_DOCUMENT.read_text())
    described = document["paths"][path][method]["responses"][str(answer.status_code)]
    if "$ref" in described:
        described = document["components"]["responses"]["Problem"]
    if "content" not in described:
        assert answer.content == b""
        return
    ((media_type, content),) = described["content"].items()
    assert answer.headers["Content-Type"] == media_type
    if "schema" in content:
        schema = {**content["schema"], "components": document["components"]}
        jsonschema_rs.validator_for(schema, offline=True).validate(answer.json())


def test_every_operation_answers_as_documented(library: httpx.Client) -> None:
    """OpenAPI: each success has the documented status, media type and schema."""
    book = {"title": "Emma", "author": "Jane Austen", "year": None}
    steps = [
        ("/opening-hours", "get", library.get("/opening-hours")),
        ("/stock-count", "get", library.get("/stock-count", params={"seconds": 0})),
        ("/books", "get", library.get("/books", params={"author": "eliot", "limit": 1})),
        ("/books", "post", library.post("/books", json=book)),
        ("/books/{number}", "get", library.get("/books/5", params=[("fields", "title"), ("fields", "year")])),
        ("/books/{number}", "put", library.put("/books/5", json={**book, "year": 1815})),
        ("/books/{number}/cover", "get", library.get("/books/5/cover")),
        ("/books/{number}/loan", "post", library.post("/books/5/loan", json={"reader": "Ada"})),
        ("/books/{number}/loan", "delete", library.delete("/books/5/loan")),
        ("/books/{number}", "delete", library.delete("/books/5")),
    ]

    for path, method, answer in steps:
        assert answer.is_success, (path, method, answer.text)
        _check(answer, path, method)
    assert steps[2][2].json()["books"][0]["title"] == "Middlemarch"
    assert steps[4][2].json() == {"title": "Emma", "year": None}
    assert steps[6][2].content.startswith(b"\x89PNG")


def test_every_refusal_is_a_documented_problem(library: httpx.Client) -> None:
    """RFC 9457: errors are problem documents with their status."""
    assert library.post("/books/1/loan", json={"reader": "Ada"}).is_success
    refusals = [
        ("/books/{number}", "get", 404, library.get("/books/99")),
        ("/books/{number}", "get", 422, library.get("/books/zero")),
        ("/books/{number}", "get", 422, library.get("/books/1", params={"fields": "price"})),
        ("/books/{number}/loan", "post", 409, library.post("/books/1/loan", json={"reader": "Bob"})),
        ("/books/{number}", "delete", 409, library.delete("/books/1")),
        ("/books/{number}/loan", "delete", 409, library.delete("/books/2/loan")),
        ("/books", "post", 422, library.post("/books", json={"title": "x", "author": "y", "price": 1})),
        ("/books", "post", 422, library.post("/books", json={"title": 1, "author": "y"})),
        ("/books", "post", 422, library.post("/books", json={"title": "x", "author": "y", "year": True})),
        ("/books", "post", 422, library.post("/books", content=b"{")),
        ("/books", "post", 422, library.post("/books", json=[])),
        ("/books", "get", 422, library.get("/books", params={"limit": "0"})),
        ("/stock-count", "get", 422, library.get("/stock-count", params={"seconds": "nan"})),
    ]

    for path, method, status, answer in refusals:
        assert answer.status_code == status, (path, method, answer.text)
        _check(answer, path, method)
        assert answer.json()["status"] == status


def test_a_taken_port_is_replaced_by_a_free_one() -> None:
    """Ours: the example starts also where its usual port is in use."""
    with serving(build_upstream(Library()), port=0) as first, serving(build_upstream(Library()), port=first) as second:
        assert first != second
        assert httpx.get(f"http://127.0.0.1:{second}/opening-hours", trust_env=False).is_success


def test_a_slow_answer_does_not_delay_the_end() -> None:
    """Ours: Ctrl-C ends the example while its slow route is counting."""
    with serving(build_upstream(Library()), port=0) as port:
        slow = f"http://127.0.0.1:{port}/stock-count?seconds=20"
        with httpx.Client(trust_env=False) as client, pytest.raises(httpx.ReadTimeout):
            client.get(slow, timeout=httpx.Timeout(5, read=0.2))
