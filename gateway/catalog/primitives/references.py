"""References of a declared handler to tools, operations and origins, with their locations in the declaration."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gateway.catalog.primitives.safety import CREDENTIAL, TOOL, refer_to_operation
from gateway.definitions.handlers.specs import (
    CallStep,
    FetchedValues,
    HandlerSpec,
    HttpSpec,
    HttpStep,
    IfStep,
    OpenApiSpec,
    Step,
    StepsSpec,
)
from gateway.domain.json_access import as_object, point


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledTool:
    """Another tool of the tenant, by name."""

    pointer: str
    name: str

    @property
    def stored(self) -> Sequence[str]:
        """The references in the form stored with the primitive."""
        return (f"{TOOL}{self.name}",)


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedOperation:
    """An imported operation, and the names of the arguments that the declaration fixes."""

    pointer: str
    source: str
    operation: str
    arguments: tuple[str, ...] = ()

    @property
    def stored(self) -> Sequence[str]:
        """The references in the form stored with the primitive."""
        return (refer_to_operation(self.source, self.operation),)


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginRequest:
    """A request to an origin, with or without a credential."""

    pointer: str
    origin: str
    credential: str | None

    @property
    def stored(self) -> Sequence[str]:
        """The references in the form stored with the primitive."""
        return () if self.credential is None else (f"{CREDENTIAL}{self.credential}",)


Reference = CalledTool | PinnedOperation | OriginRequest


def find_references(spec: HandlerSpec) -> Sequence[Reference]:
    """All references of a handler and its completions, with pointers into the request body."""
    completions = [
        _request(completion.http, point("handler", "completions", name, "http"))
        for name, completion in spec.completions.items()
        if isinstance(completion, FetchedValues)
    ]
    return [*_of_action(spec), *completions]


def _of_action(spec: HandlerSpec) -> Iterator[Reference]:
    action = spec.action
    if isinstance(action, HttpSpec):
        yield _request(action, "/handler")
    elif isinstance(action, OpenApiSpec):
        fixed = tuple(as_object(action.arguments.source) or ())
        yield PinnedOperation(pointer="/handler", source=action.source, operation=action.operation, arguments=fixed)
    elif isinstance(action, StepsSpec):
        yield from _of_steps(action.steps, "/handler/steps")


def _of_steps(steps: Sequence[Step], pointer: str) -> Iterator[Reference]:
    for number, step in enumerate(steps):
        step_pointer = f"{pointer}/{number}"
        if isinstance(step, CallStep):
            yield CalledTool(pointer=f"{step_pointer}/call", name=step.tool)
        elif isinstance(step, HttpStep):
            yield _request(step.http, f"{step_pointer}/http")
        elif isinstance(step, IfStep):
            yield from _of_steps(step.then, f"{step_pointer}/if/then")
            yield from _of_steps(step.otherwise, f"{step_pointer}/if/else")


def _request(spec: HttpSpec, pointer: str) -> OriginRequest:
    return OriginRequest(pointer=pointer, origin=spec.url.origin, credential=spec.credential)
