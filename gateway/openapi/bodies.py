"""What the request body of an operation is: the media type that is sent and the schema of the argument `body`."""

from dataclasses import dataclass

from gateway.domain.plans import BodyKind, BodyPlan, FieldPlan, Style
from gateway.openapi.components import Components
from gateway.openapi.media import concrete, is_json, is_media_type, json_rank, kind_of
from gateway.openapi.parameters import describe
from gateway.openapi.references import References
from gateway.openapi.schemas import Translated
from gateway.openapi.shapes import Object, Unusable, as_object, is_true_at, list_at, object_at, quote_text

_SENT = (BodyKind.JSON, BodyKind.FORM, BodyKind.TEXT, BodyKind.BYTES)
"""The kinds a request can carry, the preferred first."""

_FILE = Translated(
    schema={
        "type": "object",
        "properties": {
            "base64": {"type": "string", "contentEncoding": "base64"},
            "filename": {"type": "string"},
            "content_type": {"type": "string"},
        },
        "required": ["base64"],
        "additionalProperties": False,
    },
    count=4,
)
_STYLES = {style.value: style for style in (Style.FORM, Style.SPACE, Style.PIPE, Style.TAB, Style.DEEP_OBJECT)}
_MOST_MERGED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A request body: its plan, the schema of its argument, what was lost."""

    plan: BodyPlan
    translated: Translated
    losses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    kind: BodyKind
    media_type: str
    content: Object


class Bodies:
    """The request bodies of one document."""

    def __init__(self, references: References, components: Components) -> None:
        self._references = references
        self._components = components

    def plan(self, operation: Object, where: str) -> Body | str | None:
        """The body of an operation; None when it has none, a reason when an optional one cannot be offered.

        Raises:
            Unusable: a required body cannot be sent.
        """
        if operation.get("requestBody") is None:
            return None
        node = self._references.follow(operation["requestBody"], "the request body")
        try:
            choice = self._choose(object_at(node, "content"))
        except Unusable as unusable:
            if is_true_at(node, "required"):
                raise
            return f"{unusable.reason}; no body is offered"
        plan = BodyPlan(
            kind=choice.kind,
            media_type=concrete(choice.media_type),
            required=is_true_at(node, "required"),
            fields=self._fields(choice) if choice.kind is BodyKind.FORM else (),
        )
        return Body(plan=plan, translated=describe(self._translate(choice, f"{where}/requestBody"), node))

    def _choose(self, content: Object) -> _Choice:
        choices = [choice for media_type, media in content.items() if (choice := self._choice(media_type, media))]
        sent = [choice for choice in choices if choice.kind in _SENT]
        if not sent:
            named = ", ".join(quote_text(media_type) for media_type in content) or "no media type"
            raise Unusable(f"its body is {named}, which is not sent yet")
        return min(sent, key=lambda choice: (_SENT.index(choice.kind), json_rank(choice.media_type)))

    def _choice(self, media_type: str, media: object) -> _Choice | None:
        content = as_object(media) or {}
        schema = self._target(content.get("schema"))
        is_text = schema.get("type") == "string" and schema.get("format") != "binary"
        kind = kind_of(media_type, is_text=is_text) if is_media_type(media_type) else None
        return None if kind is None else _Choice(kind=kind, media_type=media_type, content=content)

    def _translate(self, choice: _Choice, where: str) -> Translated:
        if choice.kind is BodyKind.BYTES:
            return _FILE
        schema = choice.content.get("schema", {})
        if choice.kind is BodyKind.TEXT and self._target(schema).get("type") != "string":
            schema = {"type": "string"}
        if choice.kind is BodyKind.FORM and self._target(schema).get("type") is None:
            schema = {"allOf": [schema], "type": "object"} if schema else {"type": "object"}
        return self._components.translate(schema, where)

    def _target(self, node: object) -> Object:
        if as_object(node) is None:
            return {}
        try:
            return self._references.follow(node, "a schema")
        except Unusable:
            return {}

    def _fields(self, choice: _Choice) -> tuple[FieldPlan, ...]:
        """One plan for each property that is not written the default way."""
        encodings = object_at(choice.content, "encoding")
        properties = self._properties(choice.content.get("schema"))
        planned = (
            self._field(name, object_at(encodings, name), properties.get(name)) for name in {**properties, **encodings}
        )
        return tuple(field for field in planned if field != FieldPlan(name=field.name))

    def _field(self, name: str, encoding: Object, schema: object) -> FieldPlan:
        target = self._target(schema)
        is_list = _is_type(target, "array")
        if encoding.keys() & {"style", "explode", "allowReserved"}:
            style = _STYLES.get(str(encoding.get("style", "form")), Style.FORM)
            explode = encoding.get("explode")
            return FieldPlan(
                name=name,
                style=style,
                explode=explode if isinstance(explode, bool) else style is Style.FORM,
                allow_reserved=is_true_at(encoding, "allowReserved"),
            )
        item = self._target(target.get("items")) if is_list else target
        is_structure = _is_type(item, "object") or "properties" in item
        named = encoding.get("contentType", "application/json" if is_structure else None)
        if not isinstance(named, str) or not is_media_type(named) or not is_json(named):
            return FieldPlan(name=name)
        return FieldPlan(name=name, media_type=concrete(named), is_list=is_list)

    def _properties(self, schema: object) -> dict[str, object]:
        """The properties of a schema and of all it is merged from."""
        properties: dict[str, object] = {}
        merged, seen = [self._target(schema)], set[int]()
        while merged and len(seen) < _MOST_MERGED:
            current = merged.pop(0)
            if id(current) in seen:
                continue
            seen.add(id(current))
            properties = {**object_at(current, "properties"), **properties}
            merged += [self._target(part) for part in list_at(current, "allOf")]
        return properties


def _is_type(schema: Object, name: str) -> bool:
    named = schema.get("type")
    return named == name or (isinstance(named, list) and name in named)
