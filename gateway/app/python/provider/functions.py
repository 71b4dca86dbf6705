"""Functions as primitives: the JSON Schema of a signature, typed arguments, and results in the protocol's form."""

import inspect
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_type_hints

import msgspec

from gateway.app.python.provider.context import ProviderContext
from gateway.domain.fairness.thread_kinds import HANDLERS
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.results import ABSENT, Result
from gateway.handlers.python import results

_ARGUMENTS = "Arguments"
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class ProvidedArgumentsInvalid(Exception):
    """The arguments of a call do not fit the function's signature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvidedFunction:
    """A function, the type of its arguments, and the parameter that receives the context."""

    function: Callable[..., object]
    arguments: type[msgspec.Struct]
    context: str | None

    @property
    def name(self) -> str:
        """The function's name."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    @property
    def description(self) -> str:
        """The function's docstring."""
        return inspect.getdoc(self.function) or self.name

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        _, components = msgspec.json.schema_components([self.arguments], ref_template="#/$defs/{name}")
        schema = {
            key: value for key, value in components.pop(_ARGUMENTS).items() if key not in {"title", "description"}
        }
        return {**schema, "$defs": components} if components else schema

    async def run(self, arguments: Mapping[str, object], context: ProviderContext) -> object:
        """Call the function; a plain one runs in a thread.

        Raises:
            ProvidedArgumentsInvalid: the arguments do not fit the signature.
        """
        try:
            typed = msgspec.convert(dict(arguments), self.arguments)
        except msgspec.ValidationError as error:
            raise ProvidedArgumentsInvalid(str(error)) from None
        given = {name: getattr(typed, name) for name in self.arguments.__struct_fields__}
        if self.context is not None:
            given[self.context] = context
        if inspect.iscoroutinefunction(self.function):
            return await cast("Awaitable[object]", self.function(**given))
        return await run_in_thread(HANDLERS, "", self.function, **given)


def read_function(function: Callable[..., object]) -> ProvidedFunction:
    """Return the function with the types of its parameters.

    Raises:
        TypeError: a parameter is variadic or positional only, or its type has no JSON Schema.
    """
    hints = get_type_hints(function, include_extras=True)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    context = None
    for parameter in inspect.signature(function).parameters.values():
        hint = hints.get(parameter.name, Any)
        if parameter.kind not in _NAMED:
            raise TypeError(f"{parameter}: parameters need names")
        if hint is ProviderContext:
            context = parameter.name
        elif parameter.default is parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, parameter.default))
    arguments = msgspec.defstruct(_ARGUMENTS, fields, kw_only=True, forbid_unknown_fields=True)
    read = ProvidedFunction(function=function, arguments=arguments, context=context)
    read.input_schema()  # refuses a type without a schema at registration
    return read


def tool_result(returned: object) -> Mapping[str, object]:
    """Convert a `Result`, a string, None or any value that JSON can represent to the result object of a tool."""
    if returned is None:
        return {"content": []}
    if isinstance(returned, str):
        returned = results.text(returned)
    if not isinstance(returned, Result):
        value = msgspec.to_builtins(returned, str_keys=True)
        plain = results.json(value)
        returned = plain if isinstance(value, dict) else Result(content=plain.content)
    wire: dict[str, object] = {"content": list(returned.content)}
    if returned.structured is not ABSENT:
        wire["structuredContent"] = returned.structured
    if returned.is_error:
        wire["isError"] = True
    if returned.meta is not None:
        wire["_meta"] = returned.meta
    return wire


def resource_result(returned: object, *, uri: str, mime_type: str | None) -> Mapping[str, object]:
    """Convert a string, bytes or any value that JSON can represent to the result object of a resource."""
    content: dict[str, object] = {"uri": uri}
    if mime_type is not None:
        content["mimeType"] = mime_type
    if isinstance(returned, bytes):
        return {"contents": [{**content, "blob": b64encode(returned).decode()}]}
    text = returned if isinstance(returned, str) else msgspec.json.encode(returned).decode()
    return {"contents": [{**content, "text": text}]}


def prompt_result(returned: object) -> Mapping[str, object]:
    """Convert the string of one user message, or a list of messages, to the result object of a prompt."""
    if isinstance(returned, str):
        return {"messages": [{"role": "user", "content": {"type": "text", "text": returned}}]}
    return {"messages": list(cast("Sequence[Mapping[str, object]]", returned))}
