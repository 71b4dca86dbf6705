"""The serialisation of the properties of a form or multipart body, from their schemas and their `encoding`."""

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import zip_longest

from gateway.domain.http.plans import BodyKind, FieldPlan, Style
from gateway.domain.json_access import Object, as_object
from gateway.openapi.document.json_access import NOTHING, is_true_at, list_at, object_at, quote_text, text_at
from gateway.openapi.operation.file_parts import FileParts
from gateway.openapi.operation.limits import MAX_FORM_DEPTH, MAX_FORM_SCHEMAS, MAX_INNER_FIELDS
from gateway.openapi.operation.media_types import OCTETS, concrete, essence, is_json, is_media_type, is_xml, kind_of
from gateway.openapi.schema.xml import XmlNodes

_STYLES = {style.value: style for style in (Style.FORM, Style.SPACE, Style.PIPE, Style.TAB, Style.DEEP_OBJECT)}
_STYLED = frozenset(("style", "explode", "allowReserved"))
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[!-~](?:[ !-~]*[!-~])?")
_STRUCTURE_KEYWORDS = frozenset(
    ("properties", "items", "allOf", "anyOf", "oneOf", "enum", "const", "format", "contentEncoding", "contentMediaType")
)
_JSON = "application/json"
_LISTS = 8
_ENCODINGS = ("encoding", "prefixEncoding", "itemEncoding")
_INNER_STYLES = {"ssv": Style.SPACE, "tsv": Style.TAB, "pipes": Style.PIPE}


def inner_lists(schema: object) -> tuple[FieldPlan, ...]:
    """Plan the delimiters of lists inside a list, outer lists first (Swagger 2.0, `collectionFormat` of `items`)."""
    item = object_at(as_object(schema) or NOTHING, "items")
    found: list[FieldPlan] = []
    while item.get("type") == "array" and len(found) < _LISTS:
        style = _INNER_STYLES.get(str(item.get("collectionFormat")), Style.FORM)
        found.append(FieldPlan(name="", style=style, explode=False))
        item = object_at(item, "items")
    return tuple(found)


class FormFields:
    """The field plans of the bodies of one document."""

    def __init__(self, uploads: FileParts, *, dialect: tuple[int, int]) -> None:
        self._uploads = uploads
        self._dialect = dialect
        self._room = 0
        """Number of fields that may still be planned inside the fields of one body."""

    def plan(
        self, content: Object, kind: BodyKind, nodes: XmlNodes, *, depth: int = 0
    ) -> tuple[tuple[FieldPlan, ...], tuple[str, ...]]:
        """Return a plan for each property or array item that is not serialised the default way, and the losses."""
        encodings = object_at(content, "encoding")
        properties = self.properties(self.with_files(content))
        names = {**properties, **encodings}
        self._room = self._room - len(names) if depth else MAX_INNER_FIELDS
        losses: list[str] = []
        plans: list[FieldPlan] = []
        for name in names:
            encoding, schema = object_at(encodings, name), properties.get(name)
            if kind is BodyKind.FORM:
                plan = self._form_field(name, encoding, schema)
            else:
                plan = self._part(name, encoding, schema, nodes)
                losses += _header_losses(name, self._headers(encoding))
                losses += self._structure_losses(plan, schema)
            plans.append(self._with_nested_plans(plan, encoding, schema, nodes, depth=depth))
        items = self._items(content, nodes, depth=depth) if kind is BodyKind.MULTIPART else ()
        return (*items, *(plan for plan in plans if plan != FieldPlan(name=plan.name))), tuple(losses)

    def with_files(self, content: Object) -> object:
        """Return the schema of a body; a property that only its `encoding` makes a file becomes `format: binary`."""
        schema = content.get("schema", {})
        target, encodings = self._uploads.target(schema), object_at(content, "encoding")
        properties = object_at(target, "properties")
        files = {
            name: {**self._uploads.value(part), "type": "string", "format": "binary"}
            for name, part in properties.items()
            if _is_file_type(object_at(encodings, name).get("contentType")) and _is_open(self._uploads.value(part))
        }
        return {**target, "properties": {**properties, **files}} if files else schema

    def properties(self, schema: object) -> dict[str, object]:
        """Return the properties of a schema and its `allOf`, `anyOf` and `oneOf` branches, up to 200 schemas."""
        properties: dict[str, object] = {}
        merged, seen = [self._uploads.target(schema)], set[int]()
        while merged and len(seen) < MAX_FORM_SCHEMAS:
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
            return _style_plan(name, encoding)
        is_list, is_structure = self._shape(schema)
        named = encoding.get("contentType", _JSON if is_structure else None)
        if not isinstance(named, str) or not is_media_type(named) or not is_json(named):
            return FieldPlan(name=name)
        return FieldPlan(name=name, media_type=concrete(named), is_list=is_list)

    def _part(self, name: str, encoding: Object, schema: object, nodes: XmlNodes) -> FieldPlan:
        headers = _fixed_headers(self._headers(encoding))
        # OpenAPI 3.0 ignores styles here; in other versions a style overrides the content type
        if encoding.keys() & _STYLED and self._dialect != (3, 0):
            plan = _style_plan(name, encoding)
            return FieldPlan(
                name=name, style=plan.style, explode=plan.explode, is_styled=True, is_list=True, headers=headers
            )
        is_list, is_structure = self._shape(schema)
        is_file = self._uploads.is_file(schema) or self._uploads.is_files(schema)
        named = _part_type(encoding.get("contentType"))
        by_schema = self._schema_type(schema) if named is None else None
        media_type = named or by_schema
        if media_type is None and is_structure and not is_file:
            media_type = _JSON
        is_markup = media_type is not None and is_xml(media_type) and is_structure
        return FieldPlan(
            name=name,
            media_type=media_type,
            is_file=is_file,
            is_list=(is_list or self._uploads.is_files(schema)) and not self._is_whole(media_type, schema),
            is_verbatim=by_schema is not None,
            headers=headers,
            xml=nodes.add(self._member(schema)) if is_markup else None,
        )

    def _items(self, content: Object, nodes: XmlNodes, *, depth: int) -> tuple[FieldPlan, ...]:
        """The plans for the members of a multipart body that is an array (OpenAPI 3.2, `prefixEncoding`…)."""
        target = self._uploads.value(content.get("schema"))
        schemas, encodings = list_at(target, "prefixItems"), list_at(content, "prefixEncoding")
        pairs = [
            (as_object(encoding) or NOTHING, schema)
            for schema, encoding in zip_longest(schemas[:MAX_FORM_SCHEMAS], encodings[:MAX_FORM_SCHEMAS])
        ]
        pairs.append((object_at(content, "itemEncoding"), content.get("itemSchema", target.get("items"))))
        plans = [self._part("", encoding, schema, nodes) for encoding, schema in pairs]
        if all(plan == FieldPlan(name="") for plan in plans):
            return ()
        return tuple(
            self._with_nested_plans(plan, encoding, schema, nodes, depth=depth)
            for plan, (encoding, schema) in zip(plans, pairs, strict=True)
        )

    def _with_nested_plans(
        self, plan: FieldPlan, encoding: Object, schema: object, nodes: XmlNodes, *, depth: int
    ) -> FieldPlan:
        """The plan, with plans for the fields nested in its field."""
        kind = _inner_kind(plan.media_type)
        found: tuple[FieldPlan, ...] = ()
        if kind is not None and depth < MAX_FORM_DEPTH and self._room > 0:
            keys = _ENCODINGS if self._dialect >= (3, 2) else ()
            content = {"schema": self._member(schema) if plan.is_list else schema}
            content |= {key: encoding[key] for key in keys if key in encoding}
            found, _ = self.plan(content, kind, nodes, depth=depth + 1)
        elif self._dialect == (2, 0):
            found = inner_lists(schema)
        return replace(plan, fields=found) if found else plan

    def _structure_losses(self, plan: FieldPlan, schema: object) -> list[str]:
        """The loss if the part is an object or list, and its media type cannot represent one."""
        is_written = plan.media_type is None or plan.is_styled or plan.is_file or plan.xml is not None
        if is_written or not self._shape(schema)[1] or _writes_structure(plan.media_type or ""):
            return []
        return [f"the part {quote_text(plan.name)} is {plan.media_type}, which must be text or a file"]

    def _schema_type(self, schema: object) -> str | None:
        """The media type that the text schema of a part declares (from OpenAPI 3.1 on)."""
        target = self._without_refs(self._member(schema))
        if self._dialect < (3, 1) or not (_is_type(target, "string") or "type" not in target):
            return None
        if "contentEncoding" in target:
            return OCTETS
        named = text_at(target, "contentMediaType")
        return named if named is not None and is_media_type(named) and essence(named) != OCTETS else None

    def _headers(self, encoding: Object) -> dict[str, Object]:
        return {name: self._uploads.target(node) for name, node in object_at(encoding, "headers").items()}

    def _member(self, schema: object) -> object:
        target = self._uploads.value(schema)
        return target["items"] if _is_type(target, "array") and "items" in target else schema

    def _shape(self, schema: object) -> tuple[bool, bool]:
        """Two flags: the property is a list; the property is an object, or a list of objects or lists."""
        target = self._without_refs(schema)
        is_list = _is_type(target, "array")
        item = self._without_refs(target.get("items")) if is_list else target
        is_structure = _is_type(item, "object") or "properties" in item or (is_list and _is_type(item, "array"))
        return is_list, is_structure

    def _is_whole(self, media_type: str | None, schema: object) -> bool:
        """True if a list is a single part: JSON lines, or a multipart body whose parts are its members."""
        if _inner_kind(media_type) is BodyKind.MULTIPART:
            item = self._without_refs(self._without_refs(schema).get("items"))
            return not (_is_type(item, "array") or _is_type(item, "object") or "properties" in item)
        return media_type is not None and kind_of(media_type, is_text=False) is BodyKind.JSON_LINES

    def _without_refs(self, schema: object) -> Object:
        """The schema, or its only branch besides null if it has no `type`."""
        target = self._uploads.value(schema)
        for key in ("anyOf", "oneOf"):
            branches = [self._uploads.value(part) for part in list_at(target, key)]
            real = [branch for branch in branches if branch.get("type") != "null"]
            if len(real) == 1 and "type" not in target:
                return real[0]
        return target


def _inner_kind(media_type: str | None) -> BodyKind | None:
    """The kind of a part that consists of fields; None for other parts."""
    kind = kind_of(media_type, is_text=False) if media_type is not None else None
    return kind if kind in {BodyKind.FORM, BodyKind.MULTIPART} else None


def _writes_structure(media_types: str) -> bool:
    """True if one of these types can represent an object or list."""
    kinds = {kind_of(item.strip(), is_text=False) for item in media_types.split(",")}
    return not kinds.isdisjoint((BodyKind.JSON, BodyKind.FORM, BodyKind.MULTIPART, BodyKind.JSON_LINES, BodyKind.XML))


def _style_plan(name: str, encoding: Object) -> FieldPlan:
    style = _STYLES.get(str(encoding.get("style", "form")), Style.FORM)
    explode = encoding.get("explode")
    return FieldPlan(
        name=name,
        style=style,
        explode=explode if isinstance(explode, bool) else style is Style.FORM,
        allow_reserved=is_true_at(encoding, "allowReserved"),
        is_styled=True,
    )


def _is_file_type(named: object) -> bool:
    """True if every declared type of a part is binary."""
    types = named.split(",") if isinstance(named, str) else []
    return bool(types) and all(kind_of(item.strip(), is_text=False) is BodyKind.BYTES for item in types)


def _is_open(schema: Object) -> bool:
    """True if the schema describes any value or any string, without structure or encoding."""
    return schema.get("type", "string") == "string" and schema.keys().isdisjoint(_STRUCTURE_KEYWORDS)


def _part_type(named: object) -> str | None:
    """The declared media types of a part that are valid in a header; None if there are none."""
    if not isinstance(named, str):
        return None
    return ", ".join(item for text in named.split(",") if is_media_type(item := text.strip())) or None


def _fixed_headers(headers: Mapping[str, Object]) -> tuple[tuple[str, str], ...]:
    """The headers of a part with a fixed value: `const`, a single `enum` value, or `default`."""
    found: list[tuple[str, str]] = []
    for name, header in headers.items():
        value = _fixed_value(header)
        is_sendable = value is not None and _NAME.fullmatch(name) and _VALUE.fullmatch(value)
        if value is not None and is_sendable and not _is_set_by_gateway(name):
            found.append((name, value))
    return tuple(found)


def _header_losses(name: str, headers: Mapping[str, Object]) -> list[str]:
    fixed = dict(_fixed_headers(headers))
    return [
        f"the header {quote_text(header)} of the part {quote_text(name)} has no fixed value; it is not sent"
        for header, node in headers.items()
        if is_true_at(node, "required") and header not in fixed and not _is_set_by_gateway(header)
    ]


def _fixed_value(header: Object) -> str | None:
    schema = object_at(header, "schema")
    choices = list_at(schema, "enum")
    value = schema.get("const", choices[0] if len(choices) == 1 else schema.get("default"))
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value)


def _is_set_by_gateway(name: str) -> bool:
    return name.lower() in {"content-type", "content-disposition"}


def _is_type(schema: Object, name: str) -> bool:
    named = schema.get("type")
    return named == name or (isinstance(named, list) and name in named)
