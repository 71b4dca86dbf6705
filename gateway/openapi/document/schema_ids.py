"""Identifiers in a document besides pointers: its own URL, `$self`, and the `$id` and anchors of schemas.

`read_document` replaces references by identifier with pointers. A reference by an unknown identifier is left unchanged.
The document is searched only if its text contains an identifier keyword or the file name of its own URL.
"""

from collections.abc import Sequence
from typing import cast
from urllib.parse import unquote, urldefrag, urljoin

import msgspec

from gateway.domain.json_access import Object, as_list, as_object, point
from gateway.openapi.document.json_access import text_at
from gateway.openapi.document.reference_kinds import LITERAL, kind_of_member
from gateway.openapi.document.references import find_step, ref_tokens

_NOWHERE = "http://document.invalid/"
"""The base URL of a document without an address, so that its relative identifiers can be distinguished."""

_NAMES = (b"$self", b"$id", b"$anchor", b"$dynamicAnchor")
_Path = tuple[str, ...]


class _Spot(msgspec.Struct, frozen=True):
    """A value of the document, with its kind, the path to it, and the base URI of its relative references."""

    node: object
    kind: str
    path: _Path
    base: str


class Identifiers(msgspec.Struct):
    """The identifiers of one document."""

    base: str = _NOWHERE
    resources: dict[str, _Path] = msgspec.field(default_factory=dict[str, _Path])
    anchors: dict[tuple[str, str], _Path] = msgspec.field(default_factory=dict[tuple[str, str], _Path])
    dynamic: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    """Number of schemas with a dynamic anchor of each name."""

    def locate(self, root: Object, ref: str, base: str | None = None) -> str | None:
        """Return the equivalent of a reference as `#` and a pointer; None if the document has no such position."""
        uri, fragment = _divide(base or self.base, ref)
        start = self.resources.get(uri)
        if start is None:
            return None
        if fragment and not fragment.startswith("/"):
            path = self.anchors.get((uri, unquote(fragment)))
        else:
            path = (*start, *ref_tokens(f"#{fragment}"))
        return None if path is None or not _is_there(root, path) else "#" + point(*path).replace("%", "%25")


def localise(root: Object, text: bytes, *, dialect: tuple[int, int], url: str | None) -> Identifiers:
    """Replace the references by identifier in a document with pointers, in place; return the identifiers."""
    found = Identifiers()
    retrieved, _ = _divide(_NOWHERE, url or "")
    found.resources[retrieved] = ()
    own = text_at(root, "$self") if dialect >= (3, 2) else None
    found.base = _divide(retrieved, own)[0] if own else retrieved
    found.resources[found.base] = ()
    has_names = dialect >= (3, 1) and any(name in text for name in _NAMES)
    last = retrieved.rpartition("/")[2]
    if not has_names and not (url and last and last.encode() in text):
        return found
    for spot in _references(root, found, reads_schemas=dialect >= (3, 1)):
        _replace_reference(root, cast("dict[str, object]", spot.node), spot.base, found)
    return found


def _references(root: Object, found: Identifiers, *, reads_schemas: bool) -> Sequence[_Spot]:
    """Every object with `$ref` or `$dynamicRef`. Records the identifiers of all schemas in `found`."""
    spots: list[_Spot] = []
    stack = [_Spot(root, "document", (), found.base)]
    while stack:
        spot = stack.pop()
        items = as_list(spot.node)
        if items is not None:
            stack += [_Spot(item, spot.kind, (*spot.path, str(index)), spot.base) for index, item in enumerate(items)]
        node = as_object(spot.node)
        if node is None:
            continue
        base = _record_identifiers(node, spot, found) if reads_schemas and spot.kind == "schemas" else spot.base
        if isinstance(node.get("$ref", node.get("$dynamicRef")), str):
            spots.append(_Spot(node, spot.kind, spot.path, base))
        for key, value in node.items():
            kind = kind_of_member(spot.kind, key)
            if kind != LITERAL:
                stack.append(_Spot(value, kind, (*spot.path, key), base))
    return spots


def _record_identifiers(node: Object, spot: _Spot, found: Identifiers) -> str:
    """Records the identifiers of a schema, and returns the base URI of the references in the schema."""
    base, own = spot.base, text_at(node, "$id")
    if own is not None and not own.startswith("#"):
        base, _ = _divide(base, own)
        found.resources.setdefault(base, spot.path)
    for keyword in ("$anchor", "$dynamicAnchor"):
        name = text_at(node, keyword)
        if name is not None:
            found.anchors.setdefault((base, name), spot.path)
    dynamic = text_at(node, "$dynamicAnchor")
    if dynamic is not None:
        found.dynamic[dynamic] = found.dynamic.get(dynamic, 0) + 1
    return base


def _replace_reference(root: Object, node: dict[str, object], base: str, found: Identifiers) -> None:
    """Replaces a reference to this document with a pointer; `$dynamicRef` only if its anchor is not ambiguous."""
    ref = node.get("$ref")
    if isinstance(ref, str):
        node["$ref"] = found.locate(root, ref, base) or ref
        return
    dynamic = node["$dynamicRef"]
    if isinstance(dynamic, str) and found.dynamic.get(dynamic.rpartition("#")[2], 0) <= 1:
        pointer = found.locate(root, dynamic, base)
        if pointer is not None:
            del node["$dynamicRef"]
            node["$ref"] = pointer


def _divide(base: str, ref: str) -> tuple[str, str]:
    """The URI and the fragment of a reference."""
    if ref.startswith("#"):  # also correct if the base is not a hierarchical URL
        return base, ref[1:]
    try:
        uri, fragment = urldefrag(urljoin(base, ref))
    except ValueError:
        return ref, ""
    return uri, fragment


def _is_there(root: object, path: _Path) -> bool:
    for token in path:
        root, found = find_step(root, token)
        if not found:
            return False
    return True
