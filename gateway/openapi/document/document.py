"""The document reader: parses bytes as JSON or YAML, detects the dialect, and checks the limits.

A text that begins with a brace or bracket is JSON; any other text is YAML, except that HTML and XML are refused. In
both, the last of equal keys wins. References by identifier (`$self`, `$id`, anchors) become pointers.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

import msgspec
import orjson

from gateway.domain.json_access import Object, as_object
from gateway.domain.text_search.invisible import may_conceal
from gateway.errors import DocumentTooLarge, Fault, InvalidDocument
from gateway.openapi.document.json_access import clean_text, object_at
from gateway.openapi.document.limits import MAX_DEPTH, MAX_DOCUMENT_BYTES, MAX_NODES
from gateway.openapi.document.schema_ids import Identifiers, localise

_DIALECTS = {"2.0": (2, 0), "3.0": (3, 0), "3.1": (3, 1), "3.2": (3, 2)}
_SUPPORTED = "Swagger 2.0 and OpenAPI 3.0, 3.1 and 3.2"
_TITLE_LENGTH = 200
_OPENINGS = (b"{", b"[")
_DICT: type[Any] = dict
_CONTAINERS: frozenset[type] = frozenset((dict, list))
_COMMENTS = ("//", "/*", "#")
_MARKUP = re.compile(r"<(?:[!?]|[a-z][a-z0-9-]*[\s/>])", re.IGNORECASE)
_PAGE = (
    "The document is an HTML or XML page, not JSON or YAML. Give the URL of the OpenAPI file, which such a page often "
    "links as openapi.json, openapi.yaml or swagger.json."
)


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed document with a supported OpenAPI version and valid outermost members."""

    root: Object
    dialect: tuple[int, int]
    title: str
    version: str
    identifiers: Identifiers
    may_conceal: bool
    """True if its strings may have invisible characters or HTML comments."""


def read_document(raw: bytes | Mapping[str, object], *, url: str | None = None) -> Document:
    """Read a document from bytes or from a parsed object; `url` is its address.

    Raises:
        InvalidDocument: it is no OpenAPI document; faults, if any, have a pointer, or line and column.
        DocumentTooLarge: it exceeds the limits of bytes, depth or number of values.
    """
    text = raw if isinstance(raw, bytes) else _encode(raw)
    root = as_object(read_tree(text))
    if root is None:
        raise _wrong("", "the outermost value must be an object")
    dialect = _dialect(root)
    _check_paths(root, dialect)
    about = object_at(root, "info")
    return Document(
        root=root,
        dialect=dialect,
        title=_line(about.get("title")),
        version=_line(about.get("version")),
        identifiers=localise(root, text, dialect=dialect, url=url),
        may_conceal=may_conceal(text),
    )


def _encode(raw: Mapping[str, object]) -> bytes:
    try:
        return msgspec.json.encode(raw)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidDocument(f"The document is not a JSON object: {error}.") from error


def read_tree(raw: bytes) -> object:
    """Parse a JSON or YAML text of any shape.

    Raises:
        InvalidDocument: it is neither; faults, if any, have line and column if known.
        DocumentTooLarge: it exceeds the limits of bytes, depth or number of values.
    """
    if len(raw) > MAX_DOCUMENT_BYTES:  # guard: document-bytes
        raise DocumentTooLarge(f"The document has {len(raw)} bytes (limit {MAX_DOCUMENT_BYTES}).")
    if raw.lstrip()[:1] in _OPENINGS:
        with suppress(orjson.JSONDecodeError):  # the text is decoded only for the position of a fault
            return _measure(orjson.loads(raw))
    text = _decode(raw)
    opening = text.lstrip()[:1]
    if not opening:
        raise InvalidDocument("The document is empty.", faults=[Fault(pointer="", reason="empty", line=1, column=1)])
    if opening in "{[" or text.lstrip().startswith(_COMMENTS[:2]):
        return _parse_json(text)
    if _MARKUP.match(text.lstrip()):
        raise InvalidDocument(_PAGE, faults=[Fault(pointer="", reason="an HTML or XML page", line=1, column=1)])
    from gateway.openapi.document.yaml_reader import read_yaml  # noqa: PLC0415  # one worker per document, mostly JSON

    return read_yaml(text, depth=MAX_DEPTH, nodes=MAX_NODES)


def _decode(raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line = before.count(b"\n") + 1
        column = len(before) - (before.rfind(b"\n") + 1) + 1
        fault = Fault(pointer="", reason="not UTF-8", line=line, column=column)
        raise InvalidDocument(f"The document is not UTF-8 (line {line}, column {column}).", faults=[fault]) from error


def _parse_json(text: str) -> object:
    try:
        tree = cast("object", orjson.loads(text))
    except orjson.JSONDecodeError as error:
        is_comment = text.startswith(_COMMENTS, error.pos)
        reason = "JSON has no comments; remove them, or send the document as YAML" if is_comment else error.msg
        fault = Fault(pointer="", reason=reason, line=error.lineno, column=error.colno)
        raise InvalidDocument(
            f"The document is not valid JSON at line {error.lineno}, column {error.colno}: {reason}.", faults=[fault]
        ) from error
    return _measure(tree)


def _measure(tree: object) -> object:
    """Checks depth and number of values, level by level: recursion would fail on a hostile depth. Returns the tree."""
    nodes, depth = 1, 0
    level: list[Any] = [tree]
    while level:
        depth += 1
        if depth > MAX_DEPTH:  # guard: json-document-depth
            raise DocumentTooLarge(f"The document is nested more than {MAX_DEPTH} levels deep.")
        nodes += sum(map(len, level))
        if nodes > MAX_NODES:  # guard: document-values
            raise DocumentTooLarge(f"The document has more than {MAX_NODES} values.")
        level = [
            part
            for node in level
            for part in (node.values() if type(node) is _DICT else node)
            if type(part) in _CONTAINERS
        ]
    return tree


def _dialect(root: Object) -> tuple[int, int]:
    key = "swagger" if "openapi" not in root and "swagger" in root else "openapi"
    if key not in root:
        raise _wrong("", f"there is neither `openapi` nor `swagger`; supported: {_SUPPORTED}")
    found = root[key]
    text = str(found) if isinstance(found, str | float) else ""
    dialect = _DIALECTS.get(".".join(text.strip().split(".")[:2]))
    if dialect is None or (key == "swagger") is not (dialect == (2, 0)):
        raise _wrong(f"/{key}", f"this version is not supported; supported: {_SUPPORTED}")
    return dialect


def _check_paths(root: Object, dialect: tuple[int, int]) -> None:
    if "paths" not in root:
        if dialect >= (3, 1) and ("webhooks" in root or "components" in root):
            return
        raise _wrong("", "there is no `paths` object")
    if root["paths"] is not None and as_object(root["paths"]) is None:
        raise _wrong("/paths", "`paths` must be an object")


def _wrong(pointer: str, reason: str) -> InvalidDocument:
    where = f" at {pointer}" if pointer else ""
    return InvalidDocument(
        f"This is not an OpenAPI document{where}: {reason}.", faults=[Fault(pointer=pointer, reason=reason)]
    )


def _line(value: object) -> str:
    text = str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    return " ".join(clean_text(text).split())[:_TITLE_LENGTH]
