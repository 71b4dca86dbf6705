"""Definitions as typed dictionaries with the members of the protocol, so that a type checker reports wrong members."""

from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired, TypedDict

from gateway.definitions.typed.schemas import AnySchema, ObjectSchema


class Icon(TypedDict):
    """An icon of a primitive."""

    src: str
    mimeType: NotRequired[str]
    sizes: NotRequired[Sequence[str]]
    theme: NotRequired[Literal["light", "dark"]]


class Annotations(TypedDict):
    """Audience, importance and last change of a resource."""

    audience: NotRequired[Sequence[Literal["user", "assistant"]]]
    priority: NotRequired[float]
    lastModified: NotRequired[str]


class ToolHints(TypedDict):
    """Hints to clients about the effects of a tool."""

    title: NotRequired[str]
    readOnlyHint: NotRequired[bool]
    destructiveHint: NotRequired[bool]
    idempotentHint: NotRequired[bool]
    openWorldHint: NotRequired[bool]


class Execution(TypedDict):
    """Execution of a tool as a task: never, optionally or always."""

    taskSupport: NotRequired[Literal["forbidden", "optional", "required"]]


class ToolShape(TypedDict):
    """A tool definition."""

    name: NotRequired[str]
    title: NotRequired[str]
    description: str
    inputSchema: ObjectSchema
    outputSchema: NotRequired[AnySchema | ObjectSchema]
    annotations: NotRequired[ToolHints]
    execution: NotRequired[Execution]
    icons: NotRequired[Sequence[Icon]]
    _meta: NotRequired[Mapping[str, object]]


class ResourceShape(TypedDict):
    """A resource at one URI."""

    uri: NotRequired[str]
    name: str
    title: NotRequired[str]
    description: NotRequired[str]
    mimeType: NotRequired[str]
    size: NotRequired[int]
    annotations: NotRequired[Annotations]
    icons: NotRequired[Sequence[Icon]]
    _meta: NotRequired[Mapping[str, object]]


class TemplateShape(TypedDict):
    """A resource template."""

    uriTemplate: NotRequired[str]
    name: str
    title: NotRequired[str]
    description: NotRequired[str]
    mimeType: NotRequired[str]
    annotations: NotRequired[Annotations]
    icons: NotRequired[Sequence[Icon]]
    _meta: NotRequired[Mapping[str, object]]


class ArgumentShape(TypedDict):
    """One argument of a prompt."""

    name: str
    title: NotRequired[str]
    description: NotRequired[str]
    required: NotRequired[bool]


class PromptShape(TypedDict):
    """A prompt definition."""

    name: NotRequired[str]
    title: NotRequired[str]
    description: NotRequired[str]
    arguments: NotRequired[Sequence[ArgumentShape]]
    icons: NotRequired[Sequence[Icon]]
    _meta: NotRequired[Mapping[str, object]]
