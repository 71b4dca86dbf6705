"""Safety level of a declared handler, derived from its parts."""

import re
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import unquote

from gateway.definitions.handlers.specs import (
    CallStep,
    HandlerSpec,
    HttpSpec,
    HttpStep,
    IfStep,
    OpenApiSpec,
    StaticSpec,
    Step,
    StepsSpec,
    TemplateSpec,
)
from gateway.definitions.templates.template import Template, is_open
from gateway.domain.http.headers import METHOD_FIELD
from gateway.domain.json_access import as_object
from gateway.domain.tenancy.policy import Safety

_SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "QUERY"))
_METHODS = _SAFE_METHODS | {"POST", "PUT", "PATCH", "DELETE"}
_FIELD = re.compile(rf"(?:^|[?&]){METHOD_FIELD}=([^&#]*)")
_FILLED_NAME = re.compile(r"(?:^|[?&])[^=&#]*\{\{[^{}]*\}\}[^=&#]*=")
"""A field whose name has a placeholder: the caller can fill in `METHOD_FIELD`."""
_ANY_METHOD = "*"
_RANKS = {Safety.SAFE: 0, Safety.MODERATE: 1, Safety.DANGEROUS: 2}


def assess(
    spec: HandlerSpec, safety_of: Callable[[str], Safety | None] | None = None
) -> tuple[Safety, tuple[str, ...]]:
    """Return the handler's safety level, the highest of its parts, and the reasons.

    `safety_of` returns the level of a called tool or imported operation by name; None is treated as moderate. Without
    `safety_of`, called tools and operations are skipped, and the caller adds their levels.
    """
    parts = list(_parts(spec, safety_of))
    level = max((level for level, _ in parts), key=_RANKS.__getitem__, default=Safety.SAFE)
    return level, tuple(dict.fromkeys(reason for _, reason in parts))


def safety_of_method(method: str) -> Safety:
    """The safety level of a request, by its method."""
    if method.upper() in _SAFE_METHODS:
        return Safety.SAFE
    return Safety.DANGEROUS if method.upper() == "DELETE" else Safety.MODERATE


def _parts(spec: HandlerSpec, safety_of: Callable[[str], Safety | None] | None) -> Iterator[tuple[Safety, str]]:
    action = spec.action
    match action:
        case StaticSpec():
            yield Safety.SAFE, "always returns the same content"
        case TemplateSpec():
            yield Safety.SAFE, "only fills a template"
        case HttpSpec():
            yield _of_request(action)
        case OpenApiSpec():
            if safety_of is not None:
                yield _of_named(f"runs the operation {action.operation}", safety_of(action.operation))
        case StepsSpec():
            yield from _of_steps(action.steps, safety_of)


def _of_steps(steps: Sequence[Step], safety_of: Callable[[str], Safety | None] | None) -> Iterator[tuple[Safety, str]]:
    for step in steps:
        if isinstance(step, HttpStep):
            yield _of_request(step.http)
        elif isinstance(step, CallStep):
            if safety_of is not None:
                yield _of_named(f"calls {step.tool}", safety_of(step.tool))
        elif isinstance(step, IfStep):
            yield from _of_steps(step.then, safety_of)
            yield from _of_steps(step.otherwise, safety_of)


def _of_request(spec: HttpSpec) -> tuple[Safety, str]:
    level, what = safety_of_method(spec.method), f"sends {spec.method} to {spec.url.origin}"
    method = _override(spec)
    if method is None:  # guard: method-override-fields
        return level, what
    other = safety_of_method(method) if method.upper() in _METHODS else Safety.DANGEROUS
    return max(level, other, key=_RANKS.__getitem__), f"{what} with a field {METHOD_FIELD}, which can change the method"


def _override(spec: HttpSpec) -> str | None:
    """The value of `METHOD_FIELD`, which web frameworks use as the method; `*` if a caller can name the field."""
    body: object = None if spec.body is None else spec.body.source
    members = as_object(body)
    if members is not None and METHOD_FIELD in members:
        return str(members[METHOD_FIELD])
    for text in (spec.url.source, body):
        if not isinstance(text, str):
            continue
        found = _FIELD.search(unquote(text))
        if found is not None:
            return found[1]
        if _FILLED_NAME.search(text):  # guard: method-override-filled-names
            return _ANY_METHOD
    text = None if spec.body is None else spec.body.node
    # guard: method-override-form-text
    if isinstance(text, Template) and _is_form(spec) and not text.is_filtered_by("url_encode"):
        return _ANY_METHOD  # an unencoded value can end its field and begin another one
    return None


def _is_form(spec: HttpSpec) -> bool:
    """True if the body is sent as a form, or if a caller chooses the content type."""
    kinds = (value.source.lower() for name, value in spec.headers if name.lower() == "content-type")
    return any("form-urlencoded" in kind or is_open(kind) for kind in kinds)


def _of_named(what: str, level: Safety | None) -> tuple[Safety, str]:
    if level is None:
        return Safety.MODERATE, f"{what}, which is unknown"
    return level, f"{what}, which is {level}"
