"""The request body of an operation: the media types in which it can be sent, and the schema of the argument `body`."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from gateway.domain.http.plans import BodyKind, BodyPlan
from gateway.domain.json_access import Object, as_list
from gateway.openapi.document.json_access import Unusable, is_true_at, object_at, quote_text
from gateway.openapi.document.references import References
from gateway.openapi.operation.file_parts import FILE, FileParts, is_binary, is_encoded
from gateway.openapi.operation.form_fields import FormFields
from gateway.openapi.operation.limits import MAX_MEDIA_TYPES
from gateway.openapi.operation.media_types import OCTETS, concrete, essence, is_media_type, is_range, json_rank, kind_of
from gateway.openapi.operation.parameters import describe, with_examples
from gateway.openapi.schema.components import Components
from gateway.openapi.schema.examples import holder_examples
from gateway.openapi.schema.translation import Translated
from gateway.openapi.schema.xml import XmlNodes

_RAW = frozenset((BodyKind.TEXT, BodyKind.BYTES, BodyKind.JSON_LINES))
_EXEMPLIFIED = frozenset((BodyKind.JSON, BodyKind.FORM, BodyKind.MULTIPART, BodyKind.TEXT))
_OBJECTS = frozenset((BodyKind.FORM, BodyKind.MULTIPART))
_READABLE = frozenset((BodyKind.TEXT, BodyKind.XML, BodyKind.JSON_LINES))
"""Kinds of media types for which a body of raw bytes may also be passed as a string."""

_SCALARS = ("string", "integer", "number", "boolean")
_ACCEPTED_TYPES = {
    BodyKind.TEXT: _SCALARS,
    BodyKind.FORM: ("object",),
    BodyKind.MULTIPART: ("object", "array"),
    BodyKind.BYTES: ("file", "string"),
    BodyKind.JSON_LINES: ("array",),
}
"""Types of values that each kind of body accepts, regardless of its schema. For JSON and XML the schema decides."""


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """A request body: its default plan, plans for other media types, the schema of its argument, and the losses."""

    plan: BodyPlan
    translated: Translated
    where: str
    others: tuple[BodyPlan, ...] = ()
    losses: tuple[str, ...] = ()


class _Choice(msgspec.Struct, frozen=True, kw_only=True):
    kind: BodyKind
    media_type: str
    content: Object

    @property
    def schema(self) -> object:
        """The schema of the whole body, as written in the document."""
        return self.content.get("schema", {})


class Bodies:
    """The request bodies of one document."""

    def __init__(self, references: References, components: Components, *, dialect: tuple[int, int]) -> None:
        self._references = references
        self._components = components
        self._uploads = FileParts(references)
        self._fields = FormFields(self._uploads, dialect=dialect)

    def plan(self, operation: Object, where: str) -> Body | str | None:
        """Return the body of an operation; None without a body; a reason if an optional body cannot be sent.

        Raises:
            Unusable: a required body cannot be sent, or the body cannot be read.
        """
        if operation.get("requestBody") is None:
            return None
        node = self._references.follow(operation["requestBody"], "the request body")
        is_required = is_true_at(node, "required")
        try:
            choices = self._choose(object_at(node, "content"))
        except Unusable as unusable:
            if is_required:
                raise
            return f"{unusable.reason}; the tool has no body"
        planned = [self._plan(choice, is_required=is_required) for choice in choices]
        if len(choices) > 1:
            planned = [
                (replace(plan, takes=self._accepted_types(choice)), losses)
                for choice, (plan, losses) in zip(choices, planned, strict=True)
            ]
        (first, losses), *others = planned
        schema, where = self._schema(choices), f"{where}/requestBody"
        found = [value for choice in choices for value in self._examples(choice)]
        return Body(
            plan=first,
            translated=with_examples(describe(self._components.translate(schema, where), node), found),
            where=where,
            others=tuple(plan for plan, _ in others),
            losses=losses,
        )

    def _examples(self, choice: _Choice) -> Sequence[object]:
        """The examples of a media type whose values are passed and written in the same form."""
        found = holder_examples(choice.content, self._references) if choice.kind in _EXEMPLIFIED else ()
        return [value for value in found if choice.kind is not BodyKind.TEXT or isinstance(value, str)]

    def _choose(self, content: Object) -> list[_Choice]:
        """The default media type, then others that carry further values; at most 12."""
        sent = [choice for media_type, media in content.items() if (choice := self._choice(media_type, media))]
        if not sent:
            named = ", ".join(quote_text(media_type) for media_type in content)
            raise Unusable(f"its body is {named}, which is not supported" if named else "its body has no media type")
        first = min(sent, key=_rank)
        others = {
            concrete(choice.media_type): choice
            for choice in sent
            if choice is not first and concrete(choice.media_type) != concrete(first.media_type)
        }
        return [first, *(choice for choice in others.values() if self._is_useful(choice, first))][:MAX_MEDIA_TYPES]

    def _choice(self, media_type: str, media: object) -> _Choice | None:
        if not is_media_type(media_type):
            return None
        content = self._uploads.target(media)  # OpenAPI 3.2 shares media types by reference
        schema = self._uploads.value(content.get("schema"))
        is_bytes = is_binary(schema) or content.keys().isdisjoint(("schema", "itemSchema"))
        is_text = schema.get("type") == "string" and not is_bytes
        kind = kind_of(media_type, is_text=is_text, is_binary=is_bytes)
        if kind is None and content.get("schema") == {}:
            kind = kind_of(media_type, is_text=False, is_binary=True)  # an empty schema allows any value, bytes too
        if kind is BodyKind.BYTES and is_text and is_encoded(schema):
            kind = BodyKind.TEXT
        if kind in _READABLE and is_binary(schema):
            kind = BodyKind.BYTES
        return None if kind is None else _Choice(kind=kind, media_type=media_type, content=content)

    def _is_useful(self, other: _Choice, first: _Choice) -> bool:
        """True if the other type adds something: raw content, a multipart body with files, or JSON for a patch."""
        if is_range(other.media_type):
            return False
        if other.kind is BodyKind.MULTIPART:
            properties = self._fields.properties(other.schema).values()
            return any(self._uploads.is_file(part) or self._uploads.is_files(part) for part in properties)
        if other.kind is BodyKind.JSON and first.kind is BodyKind.JSON:
            return "patch" in essence(other.media_type)
        return other.kind in _RAW

    def _plan(self, choice: _Choice, *, is_required: bool) -> tuple[BodyPlan, tuple[str, ...]]:
        nodes = XmlNodes(self._references)
        if choice.kind is BodyKind.XML:
            nodes.add(choice.schema)
        fields, losses = self._fields.plan(choice.content, choice.kind, nodes) if choice.kind in _OBJECTS else ((), ())
        plan = BodyPlan(
            kind=choice.kind,
            media_type=_sent_type(choice),
            required=is_required,
            fields=fields,
            root=nodes.root_name(choice.schema) if choice.kind is BodyKind.XML else None,
            xml=nodes.nodes,
        )
        return plan, losses

    def _schema(self, choices: Sequence[_Choice]) -> object:
        """The schema of the argument: `anyOf` with the different schemas of the media types, or their only schema."""
        schemas = [self._argument_schema(choice) for choice in choices]
        distinct = [schema for index, schema in enumerate(schemas) if schema not in schemas[:index]]
        return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}

    def _argument_schema(self, choice: _Choice) -> object:
        if choice.kind is BodyKind.BYTES:
            is_readable = kind_of(choice.media_type, is_text=True) in _READABLE
            return {"anyOf": [{"type": "string"}, FILE]} if is_readable else FILE
        if choice.kind is BodyKind.JSON_LINES:
            return self._lines_schema(choice)
        schema = choice.schema
        if choice.kind is BodyKind.TEXT and self._uploads.value(schema).get("type") not in _SCALARS:
            return {"type": "string"}
        if choice.kind is BodyKind.MULTIPART:
            schema = self._uploads.with_file_arguments(self._fields.with_files(choice.content))
            if self._is_array(choice):
                return schema if choice.schema else {"type": "array", "items": choice.content.get("itemSchema", {})}
        if choice.kind in _OBJECTS and self._uploads.target(schema).get("type") is None:
            return {"allOf": [schema], "type": "object"} if schema else {"type": "object"}
        return schema

    def _accepted_types(self, choice: _Choice) -> tuple[str, ...]:
        """The types of values that this media type accepts, from its kind or its schema; an empty result means any."""
        if choice.kind in _ACCEPTED_TYPES:
            return _ACCEPTED_TYPES[choice.kind]
        target = self._uploads.value(choice.schema)
        named = target.get("type", "object" if "properties" in target else None)
        types = tuple(item for item in as_list(named) or (named,) if isinstance(item, str))
        return (*types, "null") if types and is_true_at(target, "nullable") else types

    def _is_array(self, choice: _Choice) -> bool:
        return "itemSchema" in choice.content or self._uploads.value(choice.schema).get("type") == "array"

    def _lines_schema(self, choice: _Choice) -> object:
        """An array schema whose items are the lines."""
        if "itemSchema" in choice.content:
            return {"type": "array", "items": choice.content["itemSchema"]}
        is_list = self._uploads.value(choice.schema).get("type") == "array"
        return choice.schema if is_list else {"type": "array", "items": choice.schema}


def _rank(choice: _Choice) -> tuple[bool, int]:
    """Sort JSON first, plain JSON before other JSON types; other types keep the order of the document."""
    is_json = choice.kind is BodyKind.JSON
    return not is_json, json_rank(choice.media_type) if is_json else 0


def _sent_type(choice: _Choice) -> str:
    if choice.kind is not BodyKind.BYTES:
        return concrete(choice.media_type)
    return OCTETS if essence(choice.media_type) in {"*/*", "application/*"} else choice.media_type
