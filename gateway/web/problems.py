"""Problem documents (RFC 9457) for refusals, with one HTTP status for each kind of error.

The documents contain no internal details. An unexpected error becomes a 500 with a correlation id.
"""

import json
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import orjson
import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from gateway import errors
from gateway.domain import refusals
from gateway.errors import Fault, GatewayError, NameTaken
from gateway.web.error_page import PATH

log = structlog.get_logger(__name__)

MEDIA_TYPE = "application/problem+json"

_STATUSES: Mapping[type[GatewayError], int] = {
    GatewayError: 500,
    errors.BadInput: 400,
    refusals.SecretNotKept: 422,
    errors.InvalidDocument: 422,
    errors.DocumentTooLarge: 413,
    errors.ArgumentsInvalid: 422,
    errors.DefinitionInvalid: 422,
    errors.TemplateInvalid: 422,
    errors.ReferenceMissing: 422,
    errors.NotYetSupported: 422,
    refusals.IdempotencyKeyReused: 422,
    refusals.LiveSourceDetached: 503,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.PreconditionFailed: 412,
    errors.LimitExceeded: 429,
    errors.PolicyDenied: 403,
    refusals.MissingArguments: 422,
    errors.CallError: 502,
    errors.CapabilityMissing: 422,
    errors.TemplateFailed: 502,
    errors.UpstreamError: 502,
    errors.EgressDenied: 422,
    errors.UpstreamTimeout: 504,
    errors.UpstreamBusy: 503,
    refusals.UpstreamSuspended: 503,
    errors.Unavailable: 503,
    errors.BrokenSetting: 500,
    errors.EmbeddedServerFailed: 500,
    errors.SecretUnreadable: 500,
}

_RETRY_STATUSES = frozenset({429, 503})
_CODES: Mapping[int, str] = {404: "not_found", 405: "http.method_not_allowed", 413: "document.too_large"}


def status_of(error: GatewayError) -> int:
    """Return the HTTP status of an error: the status of its class, or of the nearest base class that has one."""
    return next(_STATUSES[kind] for kind in type(error).__mro__ if kind in _STATUSES)


def problem(error: GatewayError, *, correlation_id: str, instance: str | None = None) -> Response:
    """Return the response for a gateway error."""
    fields: dict[str, Any] = {}
    if instance is not None:
        fields["instance"] = instance
    if error.faults:
        fields["errors"] = [_fault(fault) for fault in error.faults]
    if isinstance(error, NameTaken):
        if error.conflicts:
            fields["conflicts"] = [{"name": conflict.name, "owner": conflict.owner} for conflict in error.conflicts]
        if error.suggested_prefix is not None:
            fields["suggested_prefix"] = error.suggested_prefix
    status = status_of(error)
    return Response(
        problem_bytes(status, error.code, error.message, correlation_id, fields=fields),
        status,
        headers=_headers(status, error.retry_after_s),
        media_type=MEDIA_TYPE,
    )


def problem_bytes(
    status: int, code: str, detail: str, correlation_id: str, *, fields: Mapping[str, Any] | None = None
) -> bytes:
    """Return a problem document as bytes."""
    document = {
        "type": f"{PATH}#{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "correlation_id": correlation_id,
        **(fields or {}),
    }
    try:
        return orjson.dumps(document)
    except TypeError:  # a string from the caller may contain a lone surrogate
        return json.dumps(document).encode()


def problem_handlers() -> dict[Any, Any]:
    """Return the exception handlers for Starlette's `ExceptionMiddleware`; the edge logs and handles other errors."""
    return {GatewayError: _respond_refusal, HTTPException: _respond_http}


def correlation_id_of(scope: Mapping[str, Any]) -> str:
    """Return the correlation id that the edge assigned to the request; empty without an edge."""
    found = scope.get("correlation_id", "")
    return found if isinstance(found, str) else ""


async def _respond_refusal(request: Request, error: Exception) -> Response:
    refused = error if isinstance(error, GatewayError) else GatewayError("internal error")
    return problem(refused, correlation_id=correlation_id_of(request.scope))


async def _respond_http(request: Request, error: Exception) -> Response:
    """Respond to an exception of Starlette, such as an unknown route or method."""
    status, headers = (error.status_code, error.headers) if isinstance(error, HTTPException) else (500, None)
    phrase = HTTPStatus(status).phrase
    code = _CODES.get(status, "input.invalid" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "internal")
    body = problem_bytes(status, code, phrase.lower(), correlation_id_of(request.scope))
    return Response(body, status, headers=headers, media_type=MEDIA_TYPE)


def unexpected_bytes(correlation_id: str) -> bytes:
    """Return the problem document of an unexpected error."""
    return problem_bytes(
        500, GatewayError.code, "internal error; the gateway's log contains it with this correlation id", correlation_id
    )


def _headers(status: int, retry_after_s: float | None) -> dict[str, str]:
    headers: dict[str, str] = {"cache-control": "no-store"}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["www-authenticate"] = "Bearer"
    elif status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        headers["connection"] = "close"  # the rest of the body is not read
    if retry_after_s is None and status in _RETRY_STATUSES:
        retry_after_s = 1.0
    if retry_after_s is not None:
        headers["retry-after"] = str(max(1, math.ceil(retry_after_s)))
    return headers


def _fault(fault: Fault) -> dict[str, Any]:
    shown: dict[str, Any] = {"pointer": fault.pointer, "reason": fault.reason}
    if fault.line is not None:
        shown["line"] = fault.line
    if fault.column is not None:
        shown["column"] = fault.column
    return shown
