"""Types of the Python functions behind primitives: their argument and their allowed return values.

A function is plain or `async`; a plain one runs in a thread. It may return exactly the types of its alias:

- a tool: `Result` (see `handlers.python.results`), a string (one text block), or a mapping. A mapping is either a
  `CallToolResult` object or a JSON object, which is sent as structured content and as text;
- a resource: `Contents`, a string or bytes in the MIME type of its definition, or a mapping: `{"contents": […]}` or one
  content object;
- a prompt: `Messages`, a string (one message of the user), a list of messages, or a mapping: `{"messages": […]}` with
  or without a description;
- a completion: the values, or `Completions` if there are more values than those returned.

Any other type is an error: the client receives a generic error, and the log contains the type.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gateway.domain.results import Completions, Contents, Messages, Result
from gateway.domain.tenancy.principals import Principal
from gateway.handlers.python.context import Context

ToolReturn: TypeAlias = Result | str | Mapping[str, object]
ResourceReturn: TypeAlias = Contents | str | bytes | Mapping[str, object]
PromptReturn: TypeAlias = Messages | str | Mapping[str, object] | Sequence[Mapping[str, object]]
CompletionReturn: TypeAlias = Completions | Sequence[str]

ToolFunction: TypeAlias = Callable[[Context], ToolReturn] | Callable[[Context], Awaitable[ToolReturn]]
ResourceFunction: TypeAlias = Callable[[Context], ResourceReturn] | Callable[[Context], Awaitable[ResourceReturn]]
PromptFunction: TypeAlias = Callable[[Context], PromptReturn] | Callable[[Context], Awaitable[PromptReturn]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Completing:
    """A completion request: the argument, the text typed so far, and the values of the other arguments."""

    principal: Principal
    argument: str
    value: str
    chosen: Mapping[str, str]


CompletionFunction: TypeAlias = (
    Callable[[Completing], CompletionReturn] | Callable[[Completing], Awaitable[CompletionReturn]]
)
