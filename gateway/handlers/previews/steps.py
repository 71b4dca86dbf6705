"""Previews of the requests and calls of a list of steps.

A request whose placeholders depend only on arguments is rendered. A request that needs results of earlier steps, or
cannot be built, is shown as declared. The call pipeline checks a called tool when its step runs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from gateway.definitions.handlers.specs import CallStep, GatherStep, HttpSpec, HttpStep, IfStep, Step, StepsSpec
from gateway.definitions.templates.template import Tree
from gateway.domain.http.requests import Credential, UpstreamRequest
from gateway.domain.identifiers import TenantId
from gateway.errors import EgressDenied, TemplateFailed
from gateway.handlers.declared_results import variables_of
from gateway.handlers.http_request import EgressContext, HttpRequester
from gateway.handlers.previews.limits import MAX_REQUESTS, MIN_REQUEST_LENGTH, STEPS_PREVIEW_LENGTH
from gateway.handlers.previews.requests import escape, show_json, show_request, truncate
from gateway.handlers.response_body.reading import JSON


@dataclass(frozen=True, slots=True)
class StepPreview:
    """Preview of one list of steps."""

    spec: StepsSpec
    egress: EgressContext

    @property
    def tenant(self) -> TenantId:
        """The tenant of the list."""
        return self.egress.tenant

    def show(self, arguments: Mapping[str, object]) -> str:
        """Return the first 20 requests and calls in order, and the number of omitted ones; empty if there are none."""
        found = list(_actions(self.spec.steps, frozenset()))
        budget = max(STEPS_PREVIEW_LENGTH // max(len(found), 1), MIN_REQUEST_LENGTH)
        known = variables_of(arguments)
        # guard: preview-room
        shown = [truncate(self._show(act, known, budget), budget).replace("\n", "\n  ") for act in found[:MAX_REQUESTS]]
        further = len(found) - MAX_REQUESTS
        return "\n".join([*shown, *([f"and makes {further} further requests and calls"] if further > 0 else [])])

    async def credentials(self) -> tuple[Credential, ...]:
        """Return the stored credentials of the requests outside branches.

        Raises:
            CredentialMissing: a credential does not exist, or is not stored for the origin of its request.
        """
        found = [
            await HttpRequester(step.http, self.egress).credential(step.http.url.origin)
            for step in self.spec.steps
            if isinstance(step, HttpStep)
        ]
        return tuple(named.credential for named in found if named is not None)

    def _show(self, action: "_Action", known: Mapping[str, object], budget: int) -> str:
        may, step = "may " if action.is_conditional else "", action.step
        variables = _Variables(known, action.unknown)
        if isinstance(step, CallStep):
            verb = "may call" if may else "calls"
            return f"{verb} the tool {escape(step.tool)}{_arguments(step.arguments, variables, budget)}"
        verb = "may send" if may else "sends"
        try:
            request = HttpRequester(step.http, self.egress).request(variables)
        except (_Unknown, TemplateFailed, EgressDenied):  # a request that fails here is not sent
            request = _declared(step.http)
        return f"{verb} {show_request(request, longest_body=budget)}"


@dataclass(frozen=True, slots=True)
class _Action:
    """A step that sends a request or calls a tool, and the names whose values only earlier steps provide."""

    step: HttpStep | CallStep
    is_conditional: bool
    unknown: frozenset[str]


class _Unknown(Exception):
    """A placeholder needs the result of an earlier step."""


class _Variables(Mapping[str, object]):
    """The arguments; a name that an earlier step fills raises `_Unknown`."""

    def __init__(self, known: Mapping[str, object], unknown: frozenset[str]) -> None:
        self._known = known
        self._unknown = unknown

    def __getitem__(self, name: str) -> object:
        if name in self._unknown:
            raise _Unknown
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


def _actions(steps: tuple[Step, ...], unknown: frozenset[str], *, is_conditional: bool = False) -> Iterator[_Action]:
    for step in steps:
        if isinstance(step, HttpStep | CallStep):
            yield _Action(step, is_conditional, unknown)
        if isinstance(step, IfStep):
            yield from _actions((*step.then, *step.otherwise), unknown, is_conditional=True)
        unknown |= _result_names(step)


def _result_names(step: Step) -> frozenset[str]:
    """Return the names under which a step stores a result, in any of its branches."""
    if isinstance(step, IfStep):
        return frozenset[str]().union(*(_result_names(inner) for inner in (*step.then, *step.otherwise)))
    if isinstance(step, GatherStep):
        return frozenset(question.keep_as for question in step.questions if question.keep_as is not None)
    name = getattr(step, "keep_as", None)
    return frozenset({name} if isinstance(name, str) else ())


def _arguments(tree: Tree, variables: Mapping[str, object], budget: int) -> str:
    try:
        value = tree.render(variables)
    except (_Unknown, TemplateFailed):
        value = tree.source
    return f" {show_json(_json(value), budget)}" if value else ""


def _declared(spec: HttpSpec) -> UpstreamRequest:
    """Return the request with its placeholders as declared."""
    headers = [(name, template.source) for name, template in spec.headers]
    source = None if spec.body is None else spec.body.source
    body = None if source is None else source.encode("utf-8", "replace") if isinstance(source, str) else _json(source)
    if isinstance(source, dict | list):
        headers.append(("Content-Type", JSON))
    return UpstreamRequest(method=spec.method.upper(), url=spec.url.source, headers=tuple(headers), body=body)


def _json(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError):
        return b"(no JSON)"
