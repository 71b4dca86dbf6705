"""The outline of a document for the query tools: its operations with their inherited parts, and its schemas.

References are kept, and each target is stored once. Parameters, servers and security of outer levels are merged into
the operations. An import builds the outline if `ImportOptions.outline` is set.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import orjson

from gateway.domain.json_access import Object, as_list, as_object
from gateway.openapi.document.document import Document
from gateway.openapi.document.json_access import Unusable, is_true_at, list_at, object_at, text_at
from gateway.openapi.document.plain_text import plain_text
from gateway.openapi.document.references import References, ref_tokens
from gateway.openapi.operation.operations import Operation
from gateway.openapi.operation.servers import list_servers
from gateway.openapi.query.argument_words import argument_words
from gateway.openapi.query.limits import (
    MAX_NAMES,
    MAX_OUTLINE_BYTES,
    MAX_OUTLINED_LENGTH,
    MAX_OUTLINED_NAME_LENGTH,
    MAX_SUMMARY_LENGTH,
)
from gateway.openapi.query.links import Links
from gateway.openapi.query.plain_details import PlainDetails, kind_at

_COPIED_FIELDS = ("requestBody", "responses", "externalDocs", "callbacks")
_NOTHING = msgspec.Raw(b"{}")


class OutlinedOperation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One operation. `schemas` names its directly referenced schemas; `details` is everything that applies to it."""

    method: str
    path: str
    summary: str = ""
    description: str = ""
    operation_id: str | None = None
    tags: tuple[str, ...] = ()
    deprecated: bool = False
    parameters: tuple[str, ...] = ()
    """The names of its parameters and of the members of its body, at all levels."""
    argument_text: str = ""
    """The descriptions of its parameters and of the members of its body."""
    schemas: tuple[str, ...] = ()
    is_callable: bool = True
    details: msgspec.Raw = _NOTHING

    @property
    def identity(self) -> str:
        """The identity of the operation: `METHOD path`."""
        return f"{self.method} {self.path}"


class SchemaEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One named schema; `links` names the schemas that it references directly."""

    name: str
    kind: str | tuple[str, ...] = ""
    description: str = ""
    deprecated: bool = False
    links: tuple[str, ...] = ()
    schema: msgspec.Raw = _NOTHING


class Outline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The operations and named schemas of one document; `targets` contains the other referenced parts, by pointer."""

    title: str
    version: str
    openapi: str = ""
    summary: str = ""
    description: str = ""
    servers: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    section: str = "#/components/schemas"
    endpoints: tuple[OutlinedOperation, ...] = ()
    schemas: tuple[SchemaEntry, ...] = ()
    targets: dict[str, msgspec.Raw] = {}


class Outlined(msgspec.Struct, frozen=True, kw_only=True):
    """The input of an outline: the document, its OpenAPI 3 form, and the result of its compilation."""

    document: Document
    root: Object
    references: References
    operations: Sequence[Operation]
    """The selected operations of the document."""
    is_part: bool
    """True if operations were excluded; the outline then contains only schemas and tags that the selected ones use."""
    inputs: Mapping[str, Object]
    """The full input schemas of the operations that can be called, by identity."""
    base_url: str | None
    document_url: str | None


_decode = msgspec.json.Decoder(Outline).decode


def encode_outline(outline: Outline) -> bytes:
    """Encode an outline for storage."""
    return zlib.compress(msgspec.json.encode(outline), level=6)


def open_outline(stored: bytes) -> bytes:
    """Return the JSON text of a stored outline; empty if there is none."""
    return zlib.decompress(stored) if stored else b""


def decode_outline(stored: bytes) -> tuple[Outline, int]:
    """Decode a stored outline; also return its approximate size in bytes."""
    text = open_outline(stored)
    return _decode(text), 2 * len(text)


def outline_document(found: Outlined) -> Outline:
    """Build the outline of a compiled document."""
    is_swagger = found.document.dialect == (2, 0)
    section = ("definitions",) if is_swagger else ("components", "schemas")
    return _Outliner(found, section).run()


class _Outliner:
    """One pass over one document."""

    def __init__(self, found: Outlined, section: Sequence[str]) -> None:
        self._found = found
        self._links = Links(found.references, section)
        self._named = found.document.root
        for key in section:
            self._named = object_at(self._named, key)
        self._section = "#/" + "/".join(section)
        self._room = MAX_OUTLINE_BYTES
        self._plain = PlainDetails()

    def run(self) -> Outline:
        """Build the outline. Operations come first, so that their details take precedence within the byte limit."""
        found = self._found
        about = object_at(found.document.root, "info")
        endpoints = tuple(self._endpoint(operation) for operation in found.operations)
        schemas = self._reached(endpoints) if found.is_part else tuple(self._named)
        return Outline(
            title=found.document.title,
            version=found.document.version,
            openapi=".".join(map(str, found.document.dialect)),
            summary=_cut(text_at(about, "summary"), MAX_OUTLINED_LENGTH),
            description=_cut(text_at(about, "description"), MAX_OUTLINED_LENGTH),
            servers=self._servers(found.root),
            tags=self._tags(endpoints),
            section=self._section,
            endpoints=endpoints,
            schemas=tuple(self._schema(name, self._named[name]) for name in schemas),
            targets={
                pointer: self._encode(node, kind_at(ref_tokens(pointer)))
                for pointer, node in self._links.targets.items()
            },
        )

    def _reached(self, endpoints: Iterable[OutlinedOperation]) -> Sequence[str]:
        """The schemas that these operations reference, directly or indirectly, in the order of the document."""
        waiting = [name for endpoint in endpoints for name in endpoint.schemas]
        seen: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name not in seen and name in self._named:
                seen.add(name)
                waiting += self._links.schemas_of(self._named[name])
        return [name for name in self._named if name in seen]

    def _tags(self, endpoints: Sequence[OutlinedOperation]) -> tuple[str, ...]:
        """The declared tags, then the other tags of operations."""
        used = dict.fromkeys(_tags_of(endpoints))
        declared = _declared_tags(self._found.document.root)
        return tuple(dict.fromkeys([*(tag for tag in declared if not self._found.is_part or tag in used), *used]))

    def _endpoint(self, operation: Operation) -> OutlinedOperation:
        node = operation.node
        parameters = self._merge(operation)
        words = node if any(text_at(node, key) for key in ("summary", "description")) else operation.item
        details = self._details(operation, parameters)
        schema = self._found.inputs.get(operation.identity)
        names, texts = argument_words(schema)
        return OutlinedOperation(
            method=clean(operation.method),
            path=clean(operation.path),
            summary=_cut(text_at(words, "summary"), MAX_SUMMARY_LENGTH),
            description=_cut(text_at(words, "description"), MAX_OUTLINED_LENGTH),
            operation_id=None if operation.operation_id is None else clean(operation.operation_id),
            tags=_names(list_at(node, "tags")),
            deprecated=is_true_at(node, "deprecated"),
            parameters=_names((*(name for name, _ in parameters), *names)),
            argument_text=clean(plain_text(texts)),
            schemas=self._links.schemas_of(details),
            is_callable=schema is not None,
            details=self._encode(details, "operations"),
        )

    def _details(self, operation: Operation, parameters: Sequence[tuple[str, object]]) -> Object:
        node, levels = operation.node, [operation.node, operation.item, self._found.root]
        details: dict[str, object] = {}
        if parameters:
            details["parameters"] = [parameter for _, parameter in parameters]
        details |= {key: node[key] for key in _COPIED_FIELDS if key in node}
        if self._found.document.dialect == (2, 0):
            details |= self._swagger_answers(operation)
        details["servers"] = list(self._servers(*levels))
        security = node.get("security", self._found.root.get("security"))
        if as_list(security) is not None:
            details["security"] = security
        return details

    def _swagger_answers(self, operation: Operation) -> Object:
        """The responses as declared in the Swagger document; the converted form omits parts that calls do not need."""
        item = object_at(object_at(self._found.document.root, "paths"), operation.path)
        answers = object_at(item, operation.method.lower()).get("responses")
        return {} if answers is None else {"responses": answers}

    def _merge(self, operation: Operation) -> Sequence[tuple[str, object]]:
        """Each parameter, as written, with its name. An operation's parameter overrides its path item's."""
        merged: dict[tuple[object, object], tuple[str, object]] = {}
        for node in (*list_at(operation.item, "parameters"), *list_at(operation.node, "parameters")):
            try:
                found = self._found.references.follow(node, "a parameter")
            except Unusable:
                continue
            name = found.get("name")
            if isinstance(name, str):
                merged[name, str(found.get("in"))] = (name, node)
        return list(merged.values())

    def _schema(self, name: str, node: object) -> SchemaEntry:
        about = as_object(node) or {}
        kind = about.get("type")
        kinds = as_list(kind)
        shown: str | tuple[str, ...] = kind if isinstance(kind, str) else ""
        if kinds is not None:
            shown = tuple(str(item) for item in kinds[:10])
        elif "$ref" in about:
            shown = "reference"
        return SchemaEntry(
            name=clean(name),
            kind=shown,
            description=_cut(text_at(about, "description"), MAX_SUMMARY_LENGTH),
            deprecated=is_true_at(about, "deprecated"),
            links=self._links.schemas_of(node),
            schema=self._encode(node, "schemas"),
        )

    def _servers(self, *levels: Object) -> tuple[str, ...]:
        if self._found.base_url is not None:
            return (self._found.base_url,)
        return tuple(map(clean, list_servers(levels, document_url=self._found.document_url)))

    def _encode(self, value: object, kind: str) -> msgspec.Raw:
        if self._room <= 0:
            return _NOTHING
        text = _dump(value)
        if b"<" in text or self._found.document.may_conceal:
            text = _dump(self._plain.convert(value, kind))  # guard: plain-details
        self._room -= len(text)
        return msgspec.Raw(text)


def _dump(value: object) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # an integer beyond 64 bits, or an unpaired surrogate
        return msgspec.json.encode(_storable(value))


def clean(text: str) -> str:
    """Clean a string for storage: NUL and unpaired surrogates are replaced."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def _storable(value: object) -> object:
    """The value, with `clean` applied to all keys and strings."""
    mapping, items = as_object(value), as_list(value)
    if mapping is not None:
        return {clean(str(key)): _storable(member) for key, member in mapping.items()}
    if items is not None:
        return [_storable(item) for item in items]
    return clean(value) if isinstance(value, str) else value


def _cut(text: str | None, limit: int) -> str:
    message = plain_text(text or "")
    return message if len(message) <= limit else message[: limit - 1] + "…"


def _names(found: Iterable[object]) -> tuple[str, ...]:
    texts = [clean(text)[:MAX_OUTLINED_NAME_LENGTH] for text in found if isinstance(text, str) and text]
    return tuple(dict.fromkeys(texts))[:MAX_NAMES]


def _declared_tags(root: Object) -> Sequence[str]:
    objects: Iterable[Mapping[str, object] | None] = map(as_object, list_at(root, "tags"))
    return _names(tag.get("name") for tag in objects if tag is not None)


def _tags_of(endpoints: Iterable[OutlinedOperation]) -> Iterable[str]:
    return (tag for endpoint in endpoints for tag in endpoint.tags)
