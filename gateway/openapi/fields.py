"""How the properties of a form or multipart body are written: their types, and what `encoding` says of them."""

import re
from collections.abc import Mapping

from gateway.domain.plans import BodyKind, FieldPlan, Style
from gateway.openapi.media import concrete, is_json, is_media_type, is_xml
from gateway.openapi.shapes import NOTHING, Object, as_object, is_true_at, list_at, object_at, quote_text
from gateway.openapi.uploads import Uploads
from gateway.openapi.xml_nodes import XmlNodes

_STYLES = {style.value: style for style in (Style.FORM, Style.SPACE, Style.PIPE, Style.TAB, Style.DEEP_OBJECT)}
_STYLED = frozenset(("style", "explode", "allowReserved"))
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[!-~](?:[ !-~]*[!-~])?")
_MOST_MERGED = 200
_JSON = "application/json"


class Fields:
    """The field plans of the bodies of one document."""

    def __init__(self, uploads: Uploads) -> None:
        self._uploads = uploads

    def plan(self, content: Object, kind: BodyKind, nodes: XmlNodes) -> tuple[tuple[FieldPlan, ...], tuple[str, ...]]:
        """One plan for each property that is not written the default way, and the losses."""
        encodings = object_at(content, "encoding")
        properties = self.properties(content.get("schema"))
        losses: list[str] = []
        plans: list[FieldPlan] = []
        for name in {**properties, **encodings}:
            encoding = object_at(encodings, name)
            if kind is BodyKind.FORM:
                plans.append(self._form_field(name, encoding, properties.get(name)))
            else:
                plans.append(self._part(name, encoding, properties.get(name), nodes))
                losses += _header_losses(name, encoding)
        items = self._items(content, nodes) if kind is BodyKind.MULTIPART else ()
        return (*items, *(plan for plan in plans if plan != FieldPlan(name=plan.name))), tuple(losses)

    def properties(self, schema: object) -> dict[str, object]:
        """The properties of a schema and of all it is merged from or chosen from."""
        properties: dict[str, object] = {}
        merged, seen = [self._uploads.target(schema)], set[int]()
        while merged and len(seen) < _MOST_MERGED:
            current = merged.pop(0)
            if id(current) in seen:
                continue
            seen.add(id(current))
            properties = {**object_at(current, "properties"), **properties}
            for key in ("allOf", "anyOf", "oneOf"):
                merged += [self._uploads.target(part) for part in list_at(current, key)]
        return properties

    def _form_field(self, name: str, encoding: Object, schema: object) -> FieldPlan:
        if encoding.keys() & _STYLED:
            return _styled(name, encoding)
        is_list, is_structure = self._shape(schema)
        named = encoding.get("contentType", _JSON if is_structure else None)
        if not isinstance(named, str) or not is_media_type(named) or not is_json(named):
            return FieldPlan(name=name)
        return FieldPlan(name=name, media_type=concrete(named), is_list=is_list)

    def _part(self, name: str, encoding: Object, schema: object, nodes: XmlNodes) -> FieldPlan:
        headers = _fixed_headers(encoding)
        if encoding.keys() & _STYLED and "contentType" not in encoding:
            plan = _styled(name, encoding)
            return FieldPlan(
                name=name, style=plan.style, explode=plan.explode, is_styled=True, is_list=True, headers=headers
            )
        is_list, is_structure = self._shape(schema)
        is_file = self._uploads.is_file(schema) or self._uploads.is_files(schema)
        media_type = _part_type(encoding.get("contentType"))
        if media_type is None and is_structure and not is_file:
            media_type = _JSON
        is_markup = media_type is not None and is_xml(media_type) and is_structure
        return FieldPlan(
            name=name,
            media_type=media_type,
            is_file=is_file,
            is_list=is_list or self._uploads.is_files(schema),
            headers=headers,
            xml=nodes.add(self._member(schema)) if is_markup else None,
        )

    def _items(self, content: Object, nodes: XmlNodes) -> tuple[FieldPlan, ...]:
        """The plan for the members of a multipart body that is an array (OpenAPI 3.2 `itemEncoding`)."""
        target = self._uploads.target(content.get("schema"))
        schema = content.get("itemSchema", target.get("items"))
        encoding = object_at(content, "itemEncoding")
        if schema is None and not encoding:
            return ()
        plan = self._part("", encoding, schema, nodes)
        return () if plan == FieldPlan(name="") else (plan,)

    def _member(self, schema: object) -> object:
        target = self._uploads.target(schema)
        return target["items"] if _is_type(target, "array") and "items" in target else schema

    def _shape(self, schema: object) -> tuple[bool, bool]:
        """Whether the property is a list, and whether it or its members are objects or lists themselves."""
        target = self._plain(schema)
        is_list = _is_type(target, "array")
        item = self._plain(target.get("items")) if is_list else target
        is_structure = _is_type(item, "object") or "properties" in item or (is_list and _is_type(item, "array"))
        return is_list, is_structure or self._is_merged_object(item)

    def _plain(self, schema: object) -> Object:
        """The schema itself; of one that only adds null to another, the other."""
        target = self._uploads.target(schema)
        for key in ("anyOf", "oneOf"):
            branches = [self._uploads.target(part) for part in list_at(target, key)]
            real = [branch for branch in branches if branch.get("type") != "null"]
            if len(real) == 1 and "type" not in target:
                return real[0]
        return target

    def _is_merged_object(self, schema: Object) -> bool:
        parts = [self._uploads.target(part) for part in list_at(schema, "allOf")]
        return any(_is_type(part, "object") or "properties" in part for part in parts)


def _styled(name: str, encoding: Object) -> FieldPlan:
    style = _STYLES.get(str(encoding.get("style", "form")), Style.FORM)
    explode = encoding.get("explode")
    return FieldPlan(
        name=name,
        style=style,
        explode=explode if isinstance(explode, bool) else style is Style.FORM,
        allow_reserved=is_true_at(encoding, "allowReserved"),
    )


def _part_type(named: object) -> str | None:
    """The declared types of a part as far as they can stand in a header; None for none."""
    if not isinstance(named, str):
        return None
    return ", ".join(item for text in named.split(",") if is_media_type(item := text.strip())) or None


def _fixed_headers(encoding: Object) -> tuple[tuple[str, str], ...]:
    """The headers of a part that have one possible value."""
    found: list[tuple[str, str]] = []
    for name, header in object_at(encoding, "headers").items():
        value = _fixed_value(as_object(header) or NOTHING)
        is_sendable = value is not None and _NAME.fullmatch(name) and _VALUE.fullmatch(value)
        if value is not None and is_sendable and not _is_written_by_us(name):
            found.append((name, value))
    return tuple(found)


def _header_losses(name: str, encoding: Object) -> list[str]:
    fixed = dict(_fixed_headers(encoding))
    headers: Mapping[str, object] = object_at(encoding, "headers")
    return [
        f"the header {quote_text(header)} of the part {quote_text(name)} has no fixed value; it is not sent"
        for header, node in headers.items()
        if is_true_at(as_object(node) or NOTHING, "required") and header not in fixed and not _is_written_by_us(header)
    ]


def _fixed_value(header: Object) -> str | None:
    schema = object_at(header, "schema")
    choices = list_at(schema, "enum")
    value = schema.get("const", choices[0] if len(choices) == 1 else schema.get("default"))
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value)


def _is_written_by_us(name: str) -> bool:
    return name.lower() in {"content-type", "content-disposition"}


def _is_type(schema: Object, name: str) -> bool:
    named = schema.get("type")
    return named == name or (isinstance(named, list) and name in named)
