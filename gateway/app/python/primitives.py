"""Primitives written in Python. One object holds the definition, function, safety level, tenants and timeout."""

import inspect
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from gateway.app.python.registrations import Registration
from gateway.catalog.snapshots.python_primitives import PythonPrimitive
from gateway.definitions.contract.metadata import Level, read_level
from gateway.definitions.contract.prompts import PromptDefinition, validate_prompt_definition
from gateway.definitions.contract.resources import (
    ResourceDefinition,
    ResourceTemplateDefinition,
    validate_resource_definition,
    validate_resource_template_definition,
)
from gateway.definitions.contract.tools import ToolDefinition, validate_tool_definition
from gateway.definitions.typed.definitions import PromptShape, ResourceShape, TemplateShape, ToolShape
from gateway.domain.primitives import Family
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.tenants import SLUG
from gateway.errors import (
    DefinitionInvalid,
    Fault,
    HandlerInvalid,
    PromptValidationError,
    ResourceValidationError,
    ToolValidationError,
)
from gateway.handlers.python.limits import TIMEOUT_S
from gateway.handlers.python.registry import PythonHandler
from gateway.handlers.python.signatures import CompletionFunction, PromptFunction, ResourceFunction, ToolFunction

_UNDECLARED_REASONS = ("it runs the operator's code, and no safety level was declared",)
_DECLARED_REASONS = ("declared at its registration",)
_LEVELS_BY_HINT = (("destructiveHint", Safety.DANGEROUS), ("readOnlyHint", Safety.SAFE))
"""Annotations that set the level of a tool without `safety`, in order of precedence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraTool:
    """A tool. `name` may be in the definition instead. `tenants`: slugs of the tenants that get it; None for all."""

    definition: ToolDefinition | ToolShape
    handler: ToolFunction
    safety: Level | None = None
    tenants: Collection[str] | None = None
    timeout_s: float = TIMEOUT_S
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraResource:
    """A resource at one URI."""

    definition: ResourceDefinition | ResourceShape
    handler: ResourceFunction
    safety: Level | None = None
    tenants: Collection[str] | None = None
    timeout_s: float = TIMEOUT_S
    uri: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraResourceTemplate:
    """Resources at all URIs of a template; `complete` suggests values for its variables."""

    definition: ResourceTemplateDefinition | TemplateShape
    handler: ResourceFunction
    complete: CompletionFunction | None = None
    safety: Level | None = None
    tenants: Collection[str] | None = None
    timeout_s: float = TIMEOUT_S
    uri_template: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraPrompt:
    """A prompt; `complete` suggests values for its arguments."""

    definition: PromptDefinition | PromptShape
    handler: PromptFunction
    complete: CompletionFunction | None = None
    safety: Level | None = None
    tenants: Collection[str] | None = None
    timeout_s: float = TIMEOUT_S
    name: str | None = None


Extra = ExtraTool | ExtraResource | ExtraResourceTemplate | ExtraPrompt


def to_registration(extra: Extra) -> Registration:
    """Validate a Python primitive and return its registration.

    Raises:
        DefinitionInvalid: the definition, a function, the safety level, the tenants or the timeout is invalid.
    """
    family, name, definition = _definition_of(extra)
    safety, reasons = _assess(extra, definition)
    complete = extra.complete if isinstance(extra, ExtraResourceTemplate | ExtraPrompt) else None
    if complete is not None:
        _check_function(complete, "complete")
    _check_function(extra.handler, "handler")
    _check_timeout(extra.timeout_s)
    return Registration(
        primitive=PythonPrimitive(
            family=family,
            name=name,
            definition=msgspec.json.encode(definition),
            safety=safety,
            safety_reasons=reasons,
            tenants=None if extra.tenants is None else read_tenants(extra.tenants),
        ),
        handler=PythonHandler(
            function=extra.handler,
            is_async=_is_async(extra.handler),
            timeout_s=extra.timeout_s,
            complete=complete,
        ),
    )


def _definition_of(extra: Extra) -> tuple[Family, str, Mapping[str, Any]]:
    """Return family, name and wire format. A definition built in Python is validated like one sent to the admin API."""
    match extra:
        case ExtraTool():
            tool = validate_tool_definition(_named("name", extra.name, extra.definition, ToolValidationError))
            return Family.TOOL, tool.name, tool.to_wire()
        case ExtraResource():
            resource = validate_resource_definition(_named("uri", extra.uri, extra.definition, ResourceValidationError))
            return Family.RESOURCE, resource.uri, resource.to_wire()
        case ExtraResourceTemplate():
            raw = _named("uriTemplate", extra.uri_template, extra.definition, ResourceValidationError)
            template = validate_resource_template_definition(raw)
            return Family.TEMPLATE, template.uri_template, template.to_wire()
        case ExtraPrompt():
            prompt = validate_prompt_definition(_named("name", extra.name, extra.definition, PromptValidationError))
            return Family.PROMPT, prompt.name, prompt.to_wire()


def _named(field: str, name: str | None, definition: object, invalid: type[DefinitionInvalid]) -> object:
    """Return the definition in wire format, with the name of the registration.

    Raises:
        DefinitionInvalid: the definition is not an object, or contains another name.
    """
    raw = _raw_of(definition)
    if name is None:
        return raw
    if not isinstance(raw, Mapping):
        message = "the definition must be an object"
        raise invalid(message, faults=[Fault(pointer="", reason=message)])
    members = cast(Mapping[str, Any], raw)
    if members.get(field, name) != name:
        message = f"{field}: the definition has {members[field]!r}, but it is registered as {name!r}"
        raise invalid(message, faults=[Fault(pointer=f"/{field}", reason=message)])
    return {**members, field: name}


def _raw_of(definition: object) -> object:
    """Return a definition object in wire format; return any other value unchanged."""
    if isinstance(definition, ToolDefinition | ResourceDefinition | ResourceTemplateDefinition | PromptDefinition):
        return definition.to_wire()
    return definition


def _assess(extra: Extra, definition: Mapping[str, Any]) -> tuple[Safety, tuple[str, ...]]:
    """Return the declared level, or the level that a tool's annotations declare, and the reasons.

    The annotations of the operator's own code count, unlike those of a live source: they come from the same author as
    `safety`.
    """
    if extra.safety is not None:
        return read_level(extra.safety), _DECLARED_REASONS
    hints: Mapping[str, object] = definition.get("annotations") or {}
    if isinstance(extra, ExtraTool):
        for hint, level in _LEVELS_BY_HINT:
            if hints.get(hint) is True:
                return level, (f"its definition declares {hint}",)
    return Safety.MODERATE, _UNDECLARED_REASONS


def read_tenants(tenants: Collection[str]) -> frozenset[str]:
    """Return the slugs of the tenants that a program names; raise DefinitionInvalid if they are invalid."""
    if isinstance(tenants, str) or not isinstance(cast("object", tenants), Collection):
        message = "tenants must be a list of slugs, or None for all"
        raise DefinitionInvalid(message, faults=[Fault(pointer="/tenants", reason=message)])
    for slug in tenants:
        if not isinstance(cast("object", slug), str) or SLUG.fullmatch(slug) is None:
            message = f"tenants: {slug!r} is not the slug of a tenant"
            raise DefinitionInvalid(message, faults=[Fault(pointer="/tenants", reason=message)])
    return frozenset(tenants)


def _check_timeout(timeout_s: object) -> None:
    is_number = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool)
    if not (is_number and 0 < cast("float", timeout_s) < math.inf):  # every comparison with NaN is false
        message = "timeout_s must be a number of seconds above 0"
        raise HandlerInvalid(message, faults=[Fault(pointer="/timeout_s", reason=message)])


def _check_function(function: object, field: str) -> None:
    """Refuse a function that cannot be called with one argument, at its registration."""
    message = f"{field} must be a function of one argument"
    if not callable(function):
        raise HandlerInvalid(message, faults=[Fault(pointer=f"/{field}", reason=message)])
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        message = f"{field} must return its result; generator functions are not supported"
        raise HandlerInvalid(message, faults=[Fault(pointer=f"/{field}", reason=message)])
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        raise HandlerInvalid(message, faults=[Fault(pointer=f"/{field}", reason=message)]) from None
    except ValueError:  # a C function without a signature cannot be checked before its first call
        return


def _is_async(function: Callable[..., object]) -> bool:
    """True if calling `function` returns a coroutine; for a callable object, `__call__` of its class is checked."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
