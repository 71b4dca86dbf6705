"""What a tenant can declare to stand behind a primitive: one frozen value per kind of handler, templates compiled.

`handler_parsing.parse_handler` makes them from JSON. Templates see the call's arguments by name and, together, as
`arguments`; in a list of steps they also see what earlier steps kept under their `as`.
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
    """The same answer always: `content` of a tool, `contents` of a resource or `messages` of a prompt, validated."""

    content: tuple[dict[str, object], ...] = ()
    contents: tuple[dict[str, object], ...] = ()
    messages: tuple[dict[str, object], ...] = ()
    structured_content: object = None
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateSpec:
    """An answer with places to fill; exactly one of `text`, `json`, `content`, `contents` and `messages` is there.

    Trees are validated after they are filled, by `contents.validate_content`, `validate_contents` or
    `validate_messages`.
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
    """How a JSON answer is cut: the value at a pointer, then only some paths of it, then without some."""

    pointer: str | None = None
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSpec:
    """One request. `credential` names a stored credential; a `body` that is one text is sent as text, else as JSON."""

    method: str
    url: UrlTemplate
    headers: tuple[tuple[str, Template], ...] = ()
    body: Tree | None = None
    credential: str | None = None
    result: ResultSpec = ResultSpec()
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenApiSpec:
    """An imported operation under a new name: what `arguments` fills in wins over what the caller gave."""

    source: str
    operation: str
    arguments: Tree = field(default_factory=lambda: Tree.parse({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressStep:
    """Tell the client how far the call is."""

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
    """Wait."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AskStep:
    """Ask the user through the client; kept as `{"action", "content"}`. With `url` the user is sent there instead."""

    key: str
    message: Template
    schema: Mapping[str, object] | None = None
    url: UrlTemplate | None = None
    keep_as: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleStep:
    """Ask the client's model; kept as the result of `sampling/createMessage`."""

    key: str
    messages: Tree
    max_tokens: int
    system_prompt: Template | None = None
    temperature: float | None = None
    keep_as: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RootsStep:
    """Ask the client for its roots; kept as a list of `{"uri", "name"?}`."""

    key: str
    keep_as: str | None = None


Question: TypeAlias = AskStep | SampleStep | RootsStep


@dataclass(frozen=True, slots=True, kw_only=True)
class GatherStep:
    """Ask several things in one round, where the protocol has rounds."""

    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStep:
    """Call another tool of the tenant, through all its gates; kept as its result."""

    tool: str
    arguments: Tree
    keep_as: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpStep:
    """Make a request; kept as its cut result."""

    http: HttpSpec
    keep_as: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IfStep:
    """Go on with one list of steps or the other."""

    when: Condition
    then: tuple["Step", ...]
    otherwise: tuple["Step", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnStep:
    """End the list with an answer."""

    answer: TemplateSpec


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
    """A completion from a fixed list: those that begin with what was typed."""

    values: tuple[str, ...]

    def matching(self, typed: str) -> tuple[str, ...]:
        """The values that begin with the typed text, whatever its case, in the declared order."""
        wanted = typed.casefold()
        return tuple(value for value in self.values if value.casefold().startswith(wanted))


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedValues:
    """A completion by HTTP; templates see `value` (what was typed) and `arguments` (what was chosen before)."""

    http: HttpSpec


Completion: TypeAlias = ListedValues | FetchedValues


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerSpec:
    """A stored declaration, read: its kind, what it does, and how its arguments are completed."""

    kind: HandlerKind
    family: Family
    action: Action
    completions: Mapping[str, Completion] = field(default_factory=dict["str", "Completion"])
