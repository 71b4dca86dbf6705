"""Decorators that register functions: with a definition, or with the one that follows from the signature."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar, cast, overload

from gateway.app.python.registrations import Registered, Tenants
from gateway.app.python.typed_handlers import prompt_handler, resource_handler, tool_handler
from gateway.definitions.contract.metadata import Level
from gateway.definitions.contract.prompts import PromptDefinition
from gateway.definitions.contract.resources import ResourceDefinition, ResourceTemplateDefinition
from gateway.definitions.contract.tools import ToolDefinition
from gateway.definitions.typed.definitions import PromptShape, ResourceShape, TemplateShape, ToolHints, ToolShape
from gateway.definitions.typed.functions import read_function
from gateway.handlers.python.context import Context
from gateway.handlers.python.signatures import CompletionFunction, PromptFunction, ResourceFunction, ToolFunction

_Typed = TypeVar("_Typed", bound=Callable[..., object])
_Tool = TypeVar("_Tool", bound=ToolFunction)
_Resource = TypeVar("_Resource", bound=ResourceFunction)
_Prompt = TypeVar("_Prompt", bound=PromptFunction)


class Decorators(ABC):
    """The decorators of a gateway, which registers what they are given."""

    @abstractmethod
    def register_tool(
        self,
        name: str,
        definition: ToolDefinition | ToolShape,
        handler: ToolFunction,
        *,
        safety: Level | None = None,
        tenants: Tenants = None,
    ) -> Registered:
        """Register a tool."""

    @abstractmethod
    def register_resource(
        self,
        uri: str,
        definition: ResourceDefinition | ResourceShape,
        handler: ResourceFunction,
        *,
        safety: Level | None = None,
        tenants: Tenants = None,
    ) -> Registered:
        """Register a resource."""

    @abstractmethod
    def register_resource_template(
        self,
        uri_template: str,
        definition: ResourceTemplateDefinition | TemplateShape,
        handler: ResourceFunction,
        *,
        complete: CompletionFunction | None = None,
        safety: Level | None = None,
        tenants: Tenants = None,
    ) -> Registered:
        """Register a resource template."""

    @abstractmethod
    def register_prompt(
        self,
        name: str,
        definition: PromptDefinition | PromptShape,
        handler: PromptFunction,
        *,
        complete: CompletionFunction | None = None,
        safety: Level | None = None,
        tenants: Tenants = None,
    ) -> Registered:
        """Register a prompt."""

    @overload
    def tool(self, name: _Typed, /) -> _Typed: ...
    @overload
    def tool(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolHints | None = None,
        safety: Level | None = None,
        tenants: Tenants = None,
    ) -> Callable[[_Typed], _Typed]: ...
    @overload
    def tool(
        self,
        name: str,
        definition: ToolDefinition | ToolShape,
        *,
        safety: Level | None = None,
        tenants: Tenants = None,
    ) -> Callable[[_Tool], _Tool]: ...
    def tool(  # noqa: PLR0913  # each is a member of the definition or of the registration
        self,
        name: Callable[..., object] | str | None = None,
        definition: ToolDefinition | ToolShape | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolHints | None = None,
        safety: Level | None = None,
        tenants: Tenants = None,
    ) -> Callable[..., object]:
        """Register the decorated function as a tool; see `register_tool`.

        Without a definition, the function's name, docstring and signature are the definition: each parameter needs a
        type that JSON can represent, and one of the type `Context` receives the context. The function may return a
        `Result`, text, None, or any value that JSON can represent. With a definition, it takes the context only.
        """

        def decorate(handler: Callable[..., object]) -> Callable[..., object]:
            given = None if callable(name) else name
            if definition is not None:
                self.register_tool(
                    given or "", definition, cast("ToolFunction", handler), safety=safety, tenants=tenants
                )
                return handler
            read = read_function(handler, Context)
            shape = read.tool_definition(given, title=title, description=description, annotations=annotations)
            typed = cast("ToolShape", shape)
            self.register_tool(shape["name"], typed, tool_handler(read), safety=safety, tenants=tenants)
            return handler

        return decorate(name) if callable(name) else decorate

    @overload
    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        description: str | None = None,
        mime_type: str = "text/plain",
        safety: Level | None = None,
        tenants: Tenants = None,
    ) -> Callable[[_Typed], _Typed]: ...
    @overload
    def resource(
        self,
        uri: str,
        definition: ResourceDefinition | ResourceShape,
        *,
        safety: Level | None = None,
        tenants: Tenants = None,
    ) -> Callable[[_Resource], _Resource]: ...
    def resource(  # noqa: PLR0913  # as for `tool`
        self,
        uri: str,
        definition: ResourceDefinition | ResourceShape | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        mime_type: str = "text/plain",
        safety: Level | None = None,
        tenants: Tenants = None,
    ) -> Callable[..., object]:
        """Register the decorated function as a resource; see `register_resource`.

        Without a definition, the function's name and docstring are used, and the variables of a template such as
        `notes://{day}` are its parameters. It may return text, bytes, or any value that JSON can represent.
        """

        def decorate(handler: Callable[..., object]) -> Callable[..., object]:
            if definition is not None:
                one = cast("ResourceFunction", handler)
                self.register_resource(uri, definition, one, safety=safety, tenants=tenants)
                return handler
            read = read_function(handler, Context)
            shape = read.resource_definition(uri, name, description=description, mime_type=mime_type)
            if "uriTemplate" in shape:
                template = cast("TemplateShape", shape)
                self.register_resource_template(uri, template, resource_handler(read), safety=safety, tenants=tenants)
            else:
                one = resource_handler(read)
                self.register_resource(uri, cast("ResourceShape", shape), one, safety=safety, tenants=tenants)
            return handler

        return decorate

    def resource_template(
        self,
        uri_template: str,
        definition: ResourceTemplateDefinition | TemplateShape,
        *,
        complete: CompletionFunction | None = None,
        safety: Level | None = None,
        tenants: Tenants = None,
    ) -> Callable[[_Resource], _Resource]:
        """Register the decorated function as a resource template; see `register_resource_template`."""

        def decorate(handler: _Resource) -> _Resource:
            self.register_resource_template(
                uri_template, definition, handler, complete=complete, safety=safety, tenants=tenants
            )
            return handler

        return decorate

    @overload
    def prompt(self, name: _Typed, /) -> _Typed: ...
    @overload
    def prompt(
        self,
        name: str | None = None,
        *,
        description: str | None = None,
        complete: CompletionFunction | None = None,
        safety: Level | None = None,
        tenants: Tenants = None,
    ) -> Callable[[_Typed], _Typed]: ...
    @overload
    def prompt(
        self,
        name: str,
        definition: PromptDefinition | PromptShape,
        *,
        complete: CompletionFunction | None = None,
        safety: Level | None = None,
        tenants: Tenants = None,
    ) -> Callable[[_Prompt], _Prompt]: ...
    def prompt(
        self,
        name: Callable[..., object] | str | None = None,
        definition: PromptDefinition | PromptShape | None = None,
        *,
        description: str | None = None,
        complete: CompletionFunction | None = None,
        safety: Level | None = None,
        tenants: Tenants = None,
    ) -> Callable[..., object]:
        """Register the decorated function as a prompt; see `register_prompt`.

        Without a definition, the function's name, docstring and parameters are the definition. It may return the text
        of one user message, or a list of messages.
        """

        def decorate(handler: Callable[..., object]) -> Callable[..., object]:
            given, one, shape = None if callable(name) else name, cast("PromptFunction", handler), definition
            if shape is None:
                read = read_function(handler, Context)
                one = prompt_handler(read)
                shape = cast("PromptShape", read.prompt_definition(given, description=description))
                given = shape.get("name")
            self.register_prompt(given or "", shape, one, complete=complete, safety=safety, tenants=tenants)
            return handler

        return decorate(name) if callable(name) else decorate
