"""References of a declared handler to tools, operations and origins, with their locations in the declaration."""

from collections.abc import Iterator, Sequence

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
from gateway.domain.primitives import CalledTool, OriginRequest, PinnedOperation, Reference


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
