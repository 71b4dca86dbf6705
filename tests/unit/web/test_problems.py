"""Errors over HTTP."""

import inspect
import json
from http import HTTPStatus
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from structlog.testing import capture_logs

from gateway import errors
from gateway.errors import Fault, GatewayError, LimitExceeded, NameConflict, NameTaken, Unauthenticated
from gateway.web.edge import Edge
from gateway.web.problems import problem, problem_handlers, status_of

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, GatewayError)]

EXPECTED = {
    "internal": 500,
    "input.invalid": 400,
    "input.body_invalid": 400,
    "input.cursor_invalid": 400,
    "document.invalid": 422,
    "document.too_large": 413,
    "call.arguments_invalid": 422,
    "input.not_yet_supported": 422,
    "auth.unauthenticated": 401,
    "auth.forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "name_taken": 409,
    "precondition_failed": 412,
    "limit.exceeded": 429,
    "policy.denied": 403,
    "upstream.egress_denied": 422,
    "upstream.unreachable": 502,
    "upstream.timeout": 504,
    "document.fetch_failed": 502,
    "unavailable": 503,
    "unavailable.database": 503,
    "unavailable.redis": 503,
    "unavailable.audit": 503,
}


def _raised(kind: type[GatewayError], message: str) -> GatewayError:
    """An error of this kind, with whatever else it needs to be made."""
    if issubclass(kind, errors.CapabilityMissing):
        return kind(message, capability="elicitation")
    return kind(message)


def _body(response: Response) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bytes(response.body))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_has_a_status_and_the_documented_members(kind: type[GatewayError]) -> None:
    """Ours: no error of ours ends as an accident; what has no status of its own has that of its kind.

    RFC 9457 and ours: type, title, status, detail, code, correlation_id.
    """
    error = _raised(kind, "a message")
    response = problem(error, correlation_id="c-1")
    status = status_of(error)

    assert response.status_code == status >= 400
    if kind.__mro__[1] is GatewayError:
        assert kind.code in EXPECTED or status >= 500, "a new kind of error needs a decision"
    assert status == EXPECTED.get(kind.code, status)

    assert response.headers["content-type"] == "application/problem+json"
    assert _body(response) == {
        "type": f"/docs/errors#{kind.code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": _raised(kind, "a message").message,
        "code": kind.code,
        "correlation_id": "c-1",
    }


def test_faults_name_their_place() -> None:
    """Ours: each fault has a pointer and a reason, and line and column where there are some."""
    faults = [Fault(pointer="/name", reason="is missing"), Fault(pointer="", reason="no JSON", line=2, column=7)]

    body = _body(problem(errors.InvalidBody("bad", faults=faults), correlation_id="c", instance="/admin/v1/x"))

    assert body["errors"] == [
        {"pointer": "/name", "reason": "is missing"},
        {"pointer": "", "reason": "no JSON", "line": 2, "column": 7},
    ]
    assert body["instance"] == "/admin/v1/x"


def test_a_name_clash_names_the_owners() -> None:
    """Ours: the owner of the name, and a prefix that would help."""
    error = NameTaken("taken", conflicts=[NameConflict(name="a", owner="source:s")], suggested_prefix="s2_")

    body = _body(problem(error, correlation_id="c"))

    assert body["conflicts"] == [{"name": "a", "owner": "source:s"}]
    assert body["suggested_prefix"] == "s2_"


def test_headers_name_the_next_step() -> None:
    """RFC 9110: 401 names the scheme, 429 and 503 the time to retry; 413 ends the connection."""
    assert problem(Unauthenticated("no"), correlation_id="c").headers["www-authenticate"] == "Bearer"
    assert problem(LimitExceeded("no", retry_after_s=2.1), correlation_id="c").headers["retry-after"] == "3"
    assert problem(LimitExceeded("no", retry_after_s=0.01), correlation_id="c").headers["retry-after"] == "1"
    assert problem(LimitExceeded("no"), correlation_id="c").headers["retry-after"] == "1"
    assert problem(errors.RedisUnavailable("no"), correlation_id="c").headers["retry-after"] == "1"
    assert problem(errors.DocumentTooLarge("no"), correlation_id="c").headers["connection"] == "close"


def test_text_that_cannot_be_utf8_is_still_answered() -> None:
    """Ours: an error may quote what a hostile caller sent."""
    assert _body(problem(errors.NotFound("no \ud800"), correlation_id="c"))["detail"] == "no \ud800"


async def _refusing(_: Request) -> Response:
    raise errors.PreconditionFailed("another version")


async def _breaking(_: Request) -> Response:
    raise RuntimeError("postgresql://gateway:hunter2@db")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/refusing", 412, "precondition_failed"),
        ("GET", "/nowhere", 404, "not_found"),
        ("POST", "/refusing", 405, "http.method_not_allowed"),
        ("GET", "/breaking", 500, "internal"),
    ],
)
async def test_everything_an_application_refuses_is_a_problem(method: str, path: str, status: int, code: str) -> None:
    """Ours: unknown routes, wrong methods and unforeseen errors have the same form, without internal details."""
    routes = [Route("/refusing", _refusing), Route("/breaking", _breaking)]
    router = Starlette(routes=routes)
    router.middleware_stack = ExceptionMiddleware(router.router, handlers=problem_handlers())  # as the gateway has it
    app = Edge(router, hosts=["gateway"])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client:
        with capture_logs() as lines:
            response = await client.request(method, path, headers={"x-request-id": "request-1"})

    logged = [line["event"] for line in lines if line["log_level"] == "error"]
    assert logged == (["request_failed"] if status == 500 else [])

    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["code"] == code
    assert response.json()["correlation_id"] == "request-1" == response.headers["x-request-id"]
    assert "hunter2" not in response.text
    if status == 405:
        assert "GET" in response.headers["allow"]
