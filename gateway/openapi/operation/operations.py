"""The operations of a document: the methods of its path items, in the document's order."""

import re
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from gateway.domain.json_access import Object, as_object, point
from gateway.errors import DocumentTooLarge
from gateway.openapi.document.json_access import NOTHING, Unusable, clean_text, object_at, text_at
from gateway.openapi.document.references import References, merge_path_item
from gateway.openapi.operation.extensions import NO_HINTS, DocumentHints, HintedSafety, read_hints
from gateway.openapi.operation.limits import MAX_OPERATIONS
from gateway.openapi.operation.methods import method_safety
from gateway.openapi.warnings import Warnings

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}")


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One method of one path. `refusal` is the reason if its node cannot be read or its method cannot be sent."""

    method: str
    path: str
    item: Object
    node: Object
    where: str
    refusal: str | None = None
    hints: DocumentHints = NO_HINTS

    @property
    def identity(self) -> str:
        """The identity of the operation across versions of its document."""
        return f"{self.method} {self.path}"

    @property
    def operation_id(self) -> str | None:
        """Its operationId, if it has one."""
        return text_at(self.node, "operationId")


def list_operations(
    root: Object, references: References, warnings: Warnings, *, dialect: tuple[int, int]
) -> list[Operation]:
    """List the operations of a document, without webhooks and callbacks. An unreadable path item causes a warning.

    Raises:
        DocumentTooLarge: there are more than `MAX_OPERATIONS`.
    """
    found: dict[str, Operation] = {}
    for path, node in object_at(root, "paths").items():
        if path.startswith("x-"):
            continue
        try:
            item = _resolve(node, references)
        except Unusable as unusable:
            warnings.add(point("paths", path), f"{unusable.reason}; its operations are unknown")
            continue
        for operation in _operations(path, item, references, dialect):
            if operation.identity not in found:
                found[operation.identity] = replace(operation, hints=_hints(operation, root, warnings))
        if len(found) > MAX_OPERATIONS:  # guard: document-operations
            raise DocumentTooLarge(f"The document has more than {MAX_OPERATIONS} operations.")
    return list(found.values())


def _resolve(node: object, references: References) -> Object:
    item = as_object(node)
    if item is None:
        raise Unusable("the path item is not an object")
    if not isinstance(item.get("$ref"), str):
        return item
    return merge_path_item(references.follow(item, "the path item"), item)


def _operations(path: str, item: Object, references: References, dialect: tuple[int, int]) -> Iterator[Operation]:
    for method, value, where in _methods(path, item, dialect):
        node, refusal = _follow(value, references)
        yield _operation(method, path, item, node, where=where, refusal=refusal)


def _methods(path: str, item: Object, dialect: tuple[int, int]) -> Iterator[tuple[str, object, str]]:
    has_more = dialect >= (3, 2)
    for key, value in item.items():
        if key in _METHODS or (key == "query" and has_more):
            yield key.upper(), value, point("paths", path, key)
        elif key == "additionalOperations" and has_more:
            for method, node in (as_object(value) or NOTHING).items():
                yield method, node, point("paths", path, key, method)


def _follow(value: object, references: References) -> tuple[Object, str | None]:
    """The operation, with its reference resolved; otherwise the reason why it cannot be read."""
    try:
        return references.follow(value, "the operation"), None
    except Unusable as unusable:
        return NOTHING, unusable.reason


def _hints(operation: Operation, root: Object, warnings: Warnings) -> DocumentHints:
    levels = (
        HintedSafety(title="the operation", where=operation.where, node=operation.node),
        HintedSafety(title="its path item", where=point("paths", operation.path), node=operation.item),
        HintedSafety(title="the document", where="", node=root),
    )
    return read_hints(levels, method_safety(operation.method), warnings)


def _operation(method: str, path: str, item: Object, node: Object, *, where: str, refusal: str | None) -> Operation:
    is_odd = method.upper() == "CONNECT" or (method.upper() == "HEAD" and method != "HEAD")
    if refusal is None and (is_odd or not _TOKEN.fullmatch(method)):
        refusal = "its method cannot be sent"
    return Operation(method=clean_text(method), path=path, item=item, node=node, where=where, refusal=refusal)
