"""The strict contract of prompt definitions."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.definitions.contract.limits import MAX_PROMPT_ARGUMENTS, MAX_TITLE_LENGTH, MAX_TOOL_NAME_LENGTH
from gateway.definitions.contract.metadata import read_description, read_icons, read_meta, read_title
from gateway.definitions.contract.tools import NAME
from gateway.definitions.field_reader import Faults, FieldReader, copy_untrusted
from gateway.definitions.json_values import copy_containers
from gateway.domain.json_access import point
from gateway.errors import PromptValidationError

FIELDS = ("name", "title", "description", "arguments", "icons", "_meta")
ARGUMENT_FIELDS = ("name", "title", "description", "required")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptArgument:
    """One argument of a prompt."""

    name: str
    title: str | None = None
    description: str | None = None
    required: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptDefinition:
    """A prompt in the form that clients see; `arguments` is None if the definition has no such field."""

    name: str
    title: str | None = None
    description: str | None = None
    arguments: tuple[PromptArgument, ...] | None = None
    icons: tuple[Mapping[str, object], ...] | None = None
    meta: Mapping[str, object] | None = None

    @property
    def required_arguments(self) -> tuple[str, ...]:
        """The names of the arguments that a request for the prompt must contain."""
        return tuple(argument.name for argument in self.arguments or () if argument.required)

    def to_wire(self) -> dict[str, object]:
        """Return the protocol's `Prompt` object; lists and dictionaries are copies."""
        fields: dict[str, object] = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "arguments": None if self.arguments is None else [_argument_wire(one) for one in self.arguments],
            "icons": None if self.icons is None else list(self.icons),
            "_meta": self.meta,
        }
        return {name: copy_containers(value) for name, value in fields.items() if value is not None}


def validate_prompt_definition(raw: object) -> PromptDefinition:
    """Validate a `Prompt` object of the protocol and return its definition.

    Raises:
        PromptValidationError: the object violates the contract. The message names the first wrong field; each fault has
            a JSON Pointer.
    """
    faults = Faults()
    reader = FieldReader(copy_untrusted(raw, PromptValidationError, "definition"), FIELDS, where="", faults=faults)
    name = reader.string("name", max_length=MAX_TOOL_NAME_LENGTH, required=True)
    if name is not None and not NAME.fullmatch(name):
        reader.refuse("name", "must consist of letters, digits and the characters _ . / -")
    definition = PromptDefinition(
        name=name or "",
        title=read_title(reader),
        description=read_description(reader),
        arguments=_arguments(reader),
        icons=read_icons(reader),
        meta=read_meta(reader),
    )
    faults.raise_as(PromptValidationError, "definition")
    return definition


def _arguments(reader: FieldReader) -> tuple[PromptArgument, ...] | None:
    if not reader.has("arguments"):
        return None
    arguments: list[PromptArgument] = []
    names: set[str] = set()
    for index, raw in enumerate(reader.items("arguments", max_items=MAX_PROMPT_ARGUMENTS)):
        one = FieldReader(raw, ARGUMENT_FIELDS, where=reader.at("arguments") + point(index), faults=reader.faults)
        name = one.string("name", max_length=MAX_TOOL_NAME_LENGTH, required=True)
        if name is not None and name in names:
            one.refuse("name", "duplicate argument name")
        names.add(name or "")
        arguments.append(
            PromptArgument(
                name=name or "",
                title=one.string("title", max_length=MAX_TITLE_LENGTH),
                description=read_description(one),
                required=one.flag("required"),
            )
        )
    return tuple(arguments)


def _argument_wire(argument: PromptArgument) -> dict[str, object]:
    fields: dict[str, object] = {
        "name": argument.name,
        "title": argument.title,
        "description": argument.description,
        "required": argument.required,
    }
    return {name: value for name, value in fields.items() if value is not None}
