"""Specs of declared handlers: one frozen value per kind of handler, with compiled templates.

`parser.parse_handler` builds them from JSON. The variables of a template are the call's arguments by name, and
`arguments` with all of them. In a list of steps, results of earlier steps with `as` are variables too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from gateway.definitions.templates.template import Condition, Template, Tree
from gateway.definitions.uri.url_templates import UrlTemplate
from gateway.domain.primitives import Family


class HandlerKind(StrEnum):
    """The kinds of handlers that can be declared."""

    STATIC = "static"
    TEMPLATE = "template"
    HTTP = "http"
    STEPS = "steps"
    OPENAPI = "openapi"


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticSpec:
    """A constant, validated result: `content` of a tool, `contents` of a resource or `messages` of a prompt."""

    content: tuple[dict[str, object], ...] = ()
    contents: tuple[dict[str, object], ...] = ()
    messages: tuple[dict[str, object], ...] = ()
    structured_content: object = None
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateSpec:
    """A result with placeholders; exactly one of `text`, `json`, `content`, `contents` and `messages` is set.

    `content`, `contents` and `messages` are rendered first and then validated by `contract.contents`.
    """

    text: Template | None = None
    json: Tree | None = None
    content: Tree | None = None
    contents: Tree | None = None
    messages: Tree | None = None
    mime_type: str | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultSpec:
    """Projection of a JSON response: the value at `pointer`, then only the paths in `keep`, then without `drop`."""

    pointer: str | None = None
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSpec:
    """An HTTP request. `credential` names a stored credential. A `body` that renders to a string is sent as text."""

    method: str
    url: UrlTemplate
    headers: tuple[tuple[str, Template], ...] = ()
    body: Tree | None = None
    credential: str | None = None
    result: ResultSpec = ResultSpec()
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenApiSpec:
    """An imported operation under a new name. Values in `arguments` override those of the caller."""

    source: str
    operation: str
    arguments: Tree = field(default_factory=lambda: Tree.parse({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressStep:
    """Send the client a progress notification."""

    progress: Tree
    total: Tree | None = None
    message: Template | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStep:
    """Send the client a log message."""

    level: str
    text: Tree
    logger: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SleepStep:
    """Pause for a number of seconds."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AskStep:
    """Elicit input from the user: a form by `schema`, or a page at `url`. The result is `{"action", "content"}`."""

    key: str
    message: Template
    schema: Mapping[str, object] | None = None
    url: UrlTemplate | None = None
    keep_as: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleStep:
    """Sample the client's model; the result is that of `sampling/createMessage`."""

    key: str
    messages: Tree
    max_tokens: int
    system_prompt: Template | None = None
    temperature: float | None = None
    keep_as: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RootsStep:
    """Request the client's roots; the result is a list of `{"uri", "name"?}`."""

    key: str
    keep_as: str | None = None


InputStep: TypeAlias = AskStep | SampleStep | RootsStep


@dataclass(frozen=True, slots=True, kw_only=True)
class GatherStep:
    """Send several requests to the client, in one round if the protocol revision supports that."""

    questions: tuple[InputStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStep:
    """Call another tool of the tenant, with the same checks as a client's call. An error result ends the steps."""

    tool: str
    arguments: Tree
    keep_as: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpStep:
    """Send an HTTP request; the result is the projected response. An error status ends the steps."""

    http: HttpSpec
    keep_as: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IfStep:
    """Continue with one list of steps or the other."""

    when: Condition
    then: tuple["Step", ...]
    otherwise: tuple["Step", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnStep:
    """End the list with a result."""

    result: TemplateSpec


Step: TypeAlias = (
    ProgressStep
    | LogStep
    | SleepStep
    | AskStep
    | SampleStep
    | RootsStep
    | GatherStep
    | CallStep
    | HttpStep
    | IfStep
    | ReturnStep
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsSpec:
    """A list of steps, run in order until one returns."""

    steps: tuple[Step, ...]


Action: TypeAlias = StaticSpec | TemplateSpec | HttpSpec | StepsSpec | OpenApiSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedValues:
    """A completion from a fixed list of values."""

    values: tuple[str, ...]

    def matching(self, typed: str) -> tuple[str, ...]:
        """The values that begin with the typed text, case-insensitively, in declared order."""
        wanted = typed.casefold()
        return tuple(value for value in self.values if value.casefold().startswith(wanted))


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedValues:
    """A completion by HTTP. Its variables are `value` (the typed text) and `arguments` (chosen before)."""

    http: HttpSpec


CompletionSpec: TypeAlias = ListedValues | FetchedValues


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerSpec:
    """A parsed handler declaration: its kind, its action, and the completions of its arguments."""

    kind: HandlerKind
    family: Family
    action: Action
    completions: Mapping[str, CompletionSpec] = field(default_factory=dict["str", "CompletionSpec"])
