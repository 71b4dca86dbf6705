"""Safety level of a declared handler, derived from its parts."""

from collections.abc import Callable, Iterator, Sequence

from gateway.definitions.handlers.method_fields import methods_in_fields
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
from gateway.domain.http.headers import METHOD_FIELD
from gateway.domain.tenancy.policy import Safety

_SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "QUERY"))
_METHODS = _SAFE_METHODS | {"POST", "PUT", "PATCH", "DELETE"}
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
    methods = methods_in_fields(spec)
    if not methods:  # guard: method-override-fields
        return level, what
    named = [safety_of_method(name) if name.upper() in _METHODS else Safety.DANGEROUS for name in methods]
    return max(
        level, *named, key=_RANKS.__getitem__
    ), f"{what} with a field {METHOD_FIELD}, which can change the method"


def _of_named(what: str, level: Safety | None) -> tuple[Safety, str]:
    if level is None:
        return Safety.MODERATE, f"{what}, which is unknown"
    return level, f"{what}, which is {level}"
