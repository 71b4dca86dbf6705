"""Typed functions in every form that Python calls: what the definition is, and what a call passes on."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from gateway.definitions.typed.functions import CallContext, read_function


class Scale:
    """A scale of one factor."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def __call__(self, n: int) -> int:
        return self.factor * n

    def twice(self, n: int, context: CallContext) -> int:
        """Scales twice."""
        assert isinstance(context, CallContext)
        return self.factor * self.factor * n


class Waiter:
    """An object whose call is a coroutine."""

    async def __call__(self, n: int) -> int:
        """Waits for a number."""
        return n


def add(a: int, b: int = 2, *, unit: str = "") -> str:
    """Adds two numbers."""
    return f"{a + b}{unit}"


@functools.cache
def cached(n: int) -> int:
    """Kept."""
    return n


@pytest.mark.parametrize(
    ("function", "name", "description", "parameters", "returned"),
    [
        (Scale(3), "Scale", "A scale of one factor.", ["n"], 15),
        (Scale(3).twice, "twice", "Scales twice.", ["n"], 45),
        (functools.partial(add, unit="m"), "add", "Adds two numbers.", ["a", "b"], "7m"),
        (functools.partial(add, 1, unit="m"), "add", "Adds two numbers.", ["b"], "6m"),
        (functools.partial(Scale(3)), "Scale", "A scale of one factor.", ["n"], 15),
        (cached, "cached", "Kept.", ["n"], 5),
    ],
)
def test_every_callable_is_a_typed_function(
    function: Callable[..., object], name: str, description: str, parameters: list[str], returned: object
) -> None:
    """Ours: methods, partials and objects are read like functions; what a partial binds is fixed (PRG-1)."""
    read = read_function(function, CallContext)
    definition = read.tool_definition(None, title=None, description=None, annotations=None)

    assert (definition["name"], definition["description"]) == (name, description)
    assert list(definition["inputSchema"]["properties"]) == parameters
    assert all(shape["type"] == "integer" for shape in definition["inputSchema"]["properties"].values())
    assert read.call({parameters[0]: 5}, CallContext()) == returned
    assert not read.is_async


async def test_an_object_with_an_async_call_is_awaited() -> None:
    """Ours: it runs on the event loop, also behind a partial (PRG-1)."""
    for function in (Waiter(), functools.partial(Waiter())):
        read = read_function(function, CallContext)
        returned: Any = read.call({"n": 5}, CallContext())

        assert read.is_async
        assert read.docstring == "Waits for a number."
        assert inspect.isawaitable(returned)
        assert await returned == 5


_NAMELESS: Callable[[object], object] = lambda n: n  # noqa: E731
_NO_FUNCTIONS: list[tuple[Any, str]] = [
    (Scale, "Scale is a class: register a function, or an instance"),
    (functools.partial(Scale), "Scale is a class"),
    ("add", "str is not callable"),
    (dict.fromkeys, "parameters need names|has no signature"),
    (_NAMELESS, "a lambda has no name: pass `name`"),
]


@pytest.mark.parametrize(("function", "message"), _NO_FUNCTIONS)
def test_an_object_that_is_no_function_is_refused_with_what_to_write(function: Any, message: str) -> None:
    """Ours: the error at registration names the form that works (PRG-1)."""
    with pytest.raises(TypeError, match=message):
        read_function(function, CallContext).tool_definition(None, title=None, description=None, annotations=None)


def test_a_lambda_with_a_name_is_a_tool() -> None:
    """Ours: the name is all that a lambda lacks (PRG-1)."""
    read = read_function(_NAMELESS, CallContext)

    assert read.tool_definition("same", title=None, description=None, annotations=None)["description"] == "same"
