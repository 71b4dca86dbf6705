"""Typed functions as primitives: the JSON Schema of a signature, typed arguments, definitions and results.

Types of parameters are those of msgspec, such as `int`, `Literal`, `Annotated` with `msgspec.Meta`, dataclasses and
typed dictionaries, and models of pydantic.
"""

import inspect
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast, get_type_hints, runtime_checkable

import msgspec

from gateway.app.python.typed_definitions import ToolHints
from gateway.domain.fairness.thread_kinds import HANDLERS
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.results import ABSENT, Result
from gateway.handlers.python import results

_ARGUMENTS = "Arguments"
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
        """The function's name."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    @property
    def description(self) -> str:
        """The function's docstring."""
        return inspect.getdoc(self.function) or self.name

    @property
    def is_async(self) -> bool:
        """True if a call returns a coroutine."""
        return inspect.iscoroutinefunction(self.function)

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        _, components = msgspec.json.schema_components(
            [self.arguments], ref_template=_REFERENCE, schema_hook=_schema_of_model
        )
        of_models = dict[str, Any]()
        components = {name: _without_definitions(schema, of_models) for name, schema in components.items()}
        twice = components.keys() & of_models.keys()
        if twice:
            raise TypeError(f"{self.name}: two types of the parameters are called {min(twice)}")
        components |= of_models
        schema = {
            key: value for key, value in components.pop(_ARGUMENTS).items() if key not in {"title", "description"}
        }
        return {**schema, "$defs": components} if components else schema

    def tool_definition(
        self, name: str | None, *, title: str | None, description: str | None, annotations: ToolHints | None
    ) -> dict[str, Any]:
        """Return the definition of a tool; what is not given comes from the function."""
        return _given(
            name=name or self.name,
            description=description or self.description,
            inputSchema=self.input_schema(),
            title=title,
            annotations=annotations,
        )

    def resource_definition(
        self, uri: str, name: str | None, *, description: str | None, mime_type: str
    ) -> dict[str, Any]:
        """Return the definition of a resource, or of a template if the URI has variables."""
        return _given(
            **{"uriTemplate" if "{" in uri else "uri": uri},
            name=name or self.name,
            description=description or self.description,
            mimeType=mime_type,
        )

    def prompt_definition(self, name: str | None, *, description: str | None) -> dict[str, Any]:
        """Return the definition of a prompt; each parameter is an argument."""
        schema = self.input_schema()
        required = schema.get("required", ())
        listed = [{"name": each, "required": each in required} for each in schema.get("properties", {})]
        return _given(name=name or self.name, description=description or self.description, arguments=listed)

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

    Raises:
        TypeError: a parameter is variadic or positional only, or its type has no JSON Schema.
    """
    hints = get_type_hints(function, include_extras=True)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    receiver = None
    for parameter in inspect.signature(function).parameters.values():
        hint = hints.get(parameter.name, Any)
        if parameter.kind not in _NAMED:
            raise TypeError(f"{parameter}: parameters need names")
        if any(type(mark).__module__ == "pydantic.fields" for mark in getattr(hint, "__metadata__", ())):
            raise TypeError(
                f"{parameter.name}: bounds and descriptions are those of msgspec.Meta, not of pydantic.Field"
            )
        if hint is context:
            receiver = parameter.name
        elif parameter.default is parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, parameter.default))
    arguments = msgspec.defstruct(_ARGUMENTS, fields, kw_only=True, forbid_unknown_fields=True)
    read = TypedFunction(function=function, arguments=arguments, context=receiver)
    read.input_schema()  # refuses a type without a schema at registration
    return read


def result_of(returned: object) -> Result:
    """Return the result of a tool that returned a `Result`, text, None, or any value that JSON can represent.

    The caller has handled a mapping that is a result object itself.
    """
    if returned is None:
        return Result(content=())
    if isinstance(returned, str):
        return results.text(returned)
    if isinstance(returned, Result):
        return returned
    value = msgspec.to_builtins(returned, str_keys=True, enc_hook=_write_model)
    plain = results.json(value)
    return plain if isinstance(value, dict) else Result(content=plain.content)


def tool_result(returned: object) -> Mapping[str, object]:
    """Return the result object of a tool; see `result_of`."""
    result = result_of(returned)
    wire: dict[str, object] = {"content": list(result.content)}
    if result.structured is not ABSENT:
        wire["structuredContent"] = result.structured
    if result.is_error:
        wire["isError"] = True
    if result.meta is not None:
        wire["_meta"] = result.meta
    return wire


def content_of(returned: object) -> str | bytes:
    """Return the content of a resource that returned text, bytes, or any value that JSON can represent."""
    if isinstance(returned, str | bytes):
        return returned
    return msgspec.json.encode(returned, enc_hook=_write_model).decode()


def resource_result(returned: object, *, uri: str, mime_type: str | None) -> Mapping[str, object]:
    """Convert a string, bytes or any value that JSON can represent to the result object of a resource."""
    content: dict[str, object] = {"uri": uri}
    if mime_type is not None:
        content["mimeType"] = mime_type
    body = content_of(returned)
    if isinstance(body, bytes):
        return {"contents": [{**content, "blob": b64encode(body).decode()}]}
    return {"contents": [{**content, "text": body}]}


def prompt_result(returned: object) -> Mapping[str, object]:
    """Convert the string of one user message, or a list of messages, to the result object of a prompt."""
    if isinstance(returned, str):
        return {"messages": [{"role": "user", "content": {"type": "text", "text": returned}}]}
    return {"messages": list(cast("Sequence[Mapping[str, object]]", returned))}


def _given(**members: object) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _model(kind: type) -> type[_Model]:
    """Return the type as a model of pydantic.

    Raises:
        NotImplementedError: it is none. This is how a hook of msgspec declines a type, which msgspec then refuses.
    """
    if not issubclass(kind, _Model):
        raise NotImplementedError
    return kind


def _schema_of_model(kind: type) -> dict[str, Any]:
    """Return the schema of a model, with its definitions."""
    return _model(kind).model_json_schema(ref_template=_REFERENCE.replace("name", "model"))


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
    return _model(kind).model_validate(value)


def _write_model(value: object) -> object:
    model = _model(type(value))
    return model.model_dump(cast("Any", value), mode="json")
