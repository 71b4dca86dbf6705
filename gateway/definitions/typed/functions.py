"""Typed functions as primitives: the JSON Schema of a signature, typed arguments and definitions.

Types of parameters are those of msgspec, such as `int`, `Literal`, `Annotated` with `msgspec.Meta`, dataclasses and
typed dictionaries, and models of pydantic. A bound method, a `functools.partial` and an object with `__call__` count as
functions.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, cast, get_type_hints, runtime_checkable

import msgspec

from gateway.definitions.typed.definitions import ToolHints
from gateway.domain.fairness.thread_kinds import HANDLERS
from gateway.domain.fairness.threads import run_in_thread

_ARGUMENTS = "Arguments"
_LAMBDA = "<lambda>"
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_REFERENCE = "#/$defs/{name}"


@runtime_checkable
class _Model(Protocol):
    """A model of pydantic, which a program that offers tools need not have."""

    @classmethod
    def model_json_schema(cls, *, ref_template: str) -> dict[str, Any]: ...
    @classmethod
    def model_validate(cls, obj: object) -> object: ...
    def model_dump(self, *, mode: str) -> dict[str, Any]: ...


class CallContext:
    """Base of the contexts of calls. A parameter of such a type receives the context; clients cannot send it."""


class SignatureMismatch(Exception):
    """The arguments of a call do not fit the function's signature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedFunction:
    """A function, the type of its arguments, and the parameter that receives the context."""

    function: Callable[..., object]
    arguments: type[msgspec.Struct]
    context: str | None

    @property
    def name(self) -> str:
        """The function's name; of a callable object, the name of its class.

        Raises:
            TypeError: the function is a lambda.
        """
        inner = _inner(self.function)
        name = str(getattr(inner, "__name__", type(inner).__name__))
        if name == _LAMBDA:
            raise TypeError("a lambda has no name: pass `name`, or write a function with `def`")
        return name

    @property
    def docstring(self) -> str:
        """The docstring of the function; of a callable object, that of `__call__` or of its class."""
        inner = _inner(self.function)
        own = _code_of(inner).__doc__  # `getdoc` would find the docstring of `type.__call__`
        return inspect.cleandoc(own) if own else inspect.getdoc(inner) or ""

    @property
    def is_async(self) -> bool:
        """True if a call returns a coroutine."""
        return inspect.iscoroutinefunction(_code_of(_inner(self.function)))

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        _, components = msgspec.json.schema_components(
            [self.arguments], ref_template=_REFERENCE, schema_hook=_schema_of_model
        )
        of_models = dict[str, Any]()
        components = {name: _without_definitions(schema, of_models) for name, schema in components.items()}
        twice = components.keys() & of_models.keys()
        if twice:
            raise TypeError(f"two types of the parameters are called {min(twice)}")
        components |= of_models
        schema = {
            key: value for key, value in components.pop(_ARGUMENTS).items() if key not in {"title", "description"}
        }
        return {**schema, "$defs": components} if components else schema

    def tool_definition(
        self, name: str | None, *, title: str | None, description: str | None, annotations: ToolHints | None
    ) -> dict[str, Any]:
        """Return the definition of a tool; what is not given comes from the function."""
        called = name or self.name
        return _given(
            name=called,
            description=description or self.docstring or called,
            inputSchema=self.input_schema(),
            title=title,
            annotations=annotations,
        )

    def resource_definition(
        self, uri: str, name: str | None, *, description: str | None, mime_type: str
    ) -> dict[str, Any]:
        """Return the definition of a resource, or of a template if the URI has variables."""
        called = name or self.name
        return _given(
            **{"uriTemplate" if "{" in uri else "uri": uri},
            name=called,
            description=description or self.docstring or called,
            mimeType=mime_type,
        )

    def prompt_definition(self, name: str | None, *, description: str | None) -> dict[str, Any]:
        """Return the definition of a prompt; each parameter is an argument."""
        called, schema = name or self.name, self.input_schema()
        required = schema.get("required", ())
        listed = [{"name": each, "required": each in required} for each in schema.get("properties", {})]
        return _given(name=called, description=description or self.docstring or called, arguments=listed)

    def call(self, arguments: Mapping[str, object], context: object, *, is_text: bool = False) -> object:
        """Call the function; an async one returns a coroutine. `is_text`: the arguments are texts of other types.

        Raises:
            SignatureMismatch: the arguments do not fit the signature.
        """
        try:
            typed = msgspec.convert(dict(arguments), self.arguments, strict=not is_text, dec_hook=_read_model)
        except msgspec.ValidationError as error:
            raise SignatureMismatch(str(error)) from None
        given = {name: getattr(typed, name) for name in self.arguments.__struct_fields__}
        if self.context is not None:
            given[self.context] = context
        return self.function(**given)

    async def run(self, arguments: Mapping[str, object], context: object) -> object:
        """Call the function and return its result; a plain one runs in a thread.

        Raises:
            SignatureMismatch: as in `call`.
        """
        if self.is_async:
            return await cast("Awaitable[object]", self.call(arguments, context))
        return await run_in_thread(HANDLERS, "", self.call, arguments, context)


def read_function(function: Callable[..., object], context: type) -> TypedFunction:
    """Return the function with the types of its parameters; one of the type `context` receives the context.

    Arguments that a `partial` binds are fixed: they are no parameters of the primitive.

    Raises:
        TypeError: the object is no function, or has no signature. Or a parameter is variadic or positional only, or its
            type has no JSON Schema.
    """
    hints = get_type_hints(_code_of(_inner(function)), include_extras=True)
    bound = _bound_names(function)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    receiver = None
    for parameter in _signature(function).parameters.values():
        if parameter.name in bound:
            continue
        hint = hints.get(parameter.name, Any)
        if parameter.kind not in _NAMED:
            raise TypeError(f"{parameter}: parameters need names")
        if any(type(mark).__module__ == "pydantic.fields" for mark in getattr(hint, "__metadata__", ())):
            raise TypeError(
                f"{parameter.name}: bounds and descriptions are those of msgspec.Meta, not of pydantic.Field"
            )
        if isinstance(hint, type) and issubclass(hint, context):
            receiver = parameter.name
        elif parameter.default is parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, parameter.default))
    arguments = msgspec.defstruct(_ARGUMENTS, fields, kw_only=True, forbid_unknown_fields=True)
    read = TypedFunction(function=function, arguments=arguments, context=receiver)
    read.input_schema()  # refuses a type without a schema at registration
    return read


def _inner(function: Callable[..., object]) -> Callable[..., object]:
    """Return the function without its partials and its wrappers, such as those of `functools.cache`.

    Raises:
        TypeError: it is a class or not callable.
    """
    while isinstance(function, partial):
        function = function.func
    if isinstance(function, type):
        name = function.__name__
        raise TypeError(f"{name} is a class: register a function, or an instance of a class with `__call__`")
    if not callable(cast("object", function)):
        raise TypeError(f"{type(function).__name__} is not callable: register a function")
    return cast("Callable[..., object]", inspect.unwrap(function))


def _bound_names(function: object) -> AbstractSet[str]:
    """Return the names of the arguments that a partial binds by keyword."""
    return cast("partial[object]", function).keywords.keys() if isinstance(function, partial) else frozenset()


def _code_of(inner: Callable[..., object]) -> Callable[..., object]:
    """Return the function itself, or the method `__call__` of a callable object."""
    return inner if inspect.isroutine(inner) else type(inner).__call__


def _signature(function: Callable[..., object]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except ValueError:
        raise TypeError(f"{function!r} has no signature: write a function with `def` that calls it") from None


def _given(**members: object) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def model_of(kind: type) -> type[_Model]:
    """Return the type as a model of pydantic.

    Raises:
        NotImplementedError: it is none. This is how a hook of msgspec declines a type, which msgspec then refuses.
    """
    if not issubclass(kind, _Model):
        raise NotImplementedError
    return kind


def _schema_of_model(kind: type) -> dict[str, Any]:
    """Return the schema of a model, with its definitions."""
    return model_of(kind).model_json_schema(ref_template=_REFERENCE.replace("name", "model"))


def _without_definitions(schema: Any, found: dict[str, Any]) -> Any:
    """Return the schema without inner definitions of models, which are put beside the others."""
    if isinstance(schema, list):
        return [_without_definitions(one, found) for one in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    members = cast("dict[str, Any]", schema)
    for name, inner in members.get("$defs", {}).items():
        definition = _without_definitions(inner, found)
        if found.setdefault(name, definition) != definition:
            raise TypeError(f"two types of the parameters are called {name}")
    return {name: _without_definitions(value, found) for name, value in members.items() if name != "$defs"}


def _read_model(kind: type, value: object) -> object:
    return model_of(kind).model_validate(value)
