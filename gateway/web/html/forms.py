"""HTML forms: parsed within limits, and accepted only from pages of this gateway."""

from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.requests import Request

from gateway.domain.audit import RuleKind
from gateway.errors import BadInput, DecidingRule, Forbidden
from gateway.web.bodies import declared_length, read_body
from gateway.web.hosts import AllowedOrigins
from gateway.web.html.limits import FORM_TIMEOUT_S, MAX_FIELDS, MAX_FORM_BYTES

_OWN_ORIGINS = AllowedOrigins(())
FORM = DecidingRule(RuleKind.STATE, "form")
"""The rule of refused forms, for the audit trail."""


def check_same_origin(request: Request) -> None:
    """Refuse a form unless its `Origin` header is the gateway's own origin.

    Raises:
        Forbidden: the `Origin` header is missing, or names another origin.
    """
    origin, host = request.headers.get("origin"), request.headers.get("host", "")
    is_own = origin is not None and _OWN_ORIGINS.allows(origin.encode("latin-1"), host.encode("latin-1"))
    if not is_own:
        raise Forbidden("the form was not sent by a page of this gateway; reload the page", rule=FORM)


async def read_form(request: Request, *, limit: int = MAX_FIELDS) -> Mapping[str, str]:
    """Return the fields of a form.

    Raises:
        BadInput: the body is not a form, is malformed, has too many fields, or repeats a field.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise BadInput("the body must be application/x-www-form-urlencoded")
    declared = declared_length(request.scope)
    body = await read_body(request.receive, limit=MAX_FORM_BYTES, deadline=FORM_TIMEOUT_S, declared=declared)
    try:
        return read_fields(body.decode("ascii"), limit=limit)
    except UnicodeDecodeError:
        raise BadInput("the form cannot be read") from None


def read_fields(encoded: str, *, limit: int = MAX_FIELDS) -> Mapping[str, str]:
    """Return the fields of an encoded form or query.

    Raises:
        BadInput: the form is malformed, has too many fields, or a field is repeated.
    """
    if not encoded:
        return {}
    try:
        pairs = parse_qsl(encoded, keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=limit)
    except ValueError:
        raise BadInput("the form cannot be read") from None
    form = dict(pairs)
    if len(form) != len(pairs):  # guard: form-field-once
        raise BadInput("a field of the form was sent twice")
    return form
