"""Typed functions as handlers: functions of one context, which call them with typed arguments."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from gateway.app.python.typed_results import content_of, result_of
from gateway.definitions.typed.functions import SignatureMismatch, TypedFunction
from gateway.domain.json_access import as_object
from gateway.domain.results import Contents
from gateway.errors import BadInput
from gateway.handlers.python.context import Context
from gateway.handlers.python.results import error
from gateway.handlers.python.signatures import PromptFunction, ResourceFunction, ToolFunction


def tool_handler(read: TypedFunction) -> ToolFunction:
    """Return the handler of a tool; arguments that do not fit a type beyond its schema are an error result."""
    handle = _handler(read, _tool_return)

    async def run(context: Context) -> Any:
        try:
            return await cast("Awaitable[Any]", handle(context))
        except BadInput as invalid:
            return error("ARGUMENTS_INVALID", str(invalid))

    def run_plain(context: Context) -> Any:
        try:
            return handle(context)
        except BadInput as invalid:
            return error("ARGUMENTS_INVALID", str(invalid))

    return run if read.is_async else run_plain


def resource_handler(read: TypedFunction) -> ResourceFunction:
    """Return the handler of a resource or template; the variables of a template are texts."""
    return cast("ResourceFunction", _handler(read, _resource_return, is_text=True))


def prompt_handler(read: TypedFunction) -> PromptFunction:
    """Return the handler of a prompt; its arguments are texts."""
    return cast("PromptFunction", _handler(read, lambda returned: returned, is_text=True))


def _tool_return(returned: object) -> object:
    """The value as a plain handler may return it: mappings stay, so that a result object is one; others are results."""
    return as_object(returned) or result_of(returned)


def _resource_return(returned: object) -> object:
    is_own = isinstance(returned, Contents) or "contents" in (as_object(returned) or ())
    return returned if is_own else content_of(returned)


def _handler(
    read: TypedFunction, convert: Callable[[object], object], *, is_text: bool = False
) -> Callable[[Context], Any]:
    def call(context: Context) -> object:
        try:
            return read.call(context.arguments, context, is_text=is_text)
        except SignatureMismatch as invalid:
            raise BadInput(str(invalid)) from None

    async def run(context: Context) -> object:
        return convert(await cast("Awaitable[object]", call(context)))

    return run if read.is_async else lambda context: convert(call(context))
