"""Which parts of a document have names besides the way to them: its own URL, `$self`, and what schemas call themselves.

References by such a name become pointers once, before anything else reads the document, so that every reference that
is left leads to a place in the document or out of it. Names are looked for only where the text has one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import unquote, urldefrag, urljoin

from gateway.openapi.document.json_access import Object, as_list, as_object, point, text_at
from gateway.openapi.document.reference_kinds import LITERAL, kind_of_member
from gateway.openapi.document.references import find_step, ref_tokens

_NOWHERE = "http://document.invalid/"
"""What a document without an address is taken to be called, so that relative names can be told apart."""

_NAMES = (b"$self", b"$id", b"$anchor", b"$dynamicAnchor")
_Way = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Spot:
    """A value of the document: what it is, the way to it, and the URI that its relative references start from."""

    node: object
    kind: str
    way: _Way
    base: str


@dataclass(slots=True)
class Identifiers:
    """The names of one document."""

    base: str = _NOWHERE
    resources: dict[str, _Way] = field(default_factory=dict[str, _Way])
    anchors: dict[tuple[str, str], _Way] = field(default_factory=dict[tuple[str, str], _Way])
    dynamic: dict[str, int] = field(default_factory=dict[str, int])
    """How many schemas have a dynamic anchor of this name."""

    def locate(self, root: Object, ref: str, base: str | None = None) -> str | None:
        """The pointer that a reference stands for; None where it names nothing in this document."""
        uri, fragment = _divide(base or self.base, ref)
        start = self.resources.get(uri)
        if start is None:
            return None
        if fragment and not fragment.startswith("/"):
            way = self.anchors.get((uri, unquote(fragment)))
        else:
            way = (*start, *ref_tokens(f"#{fragment}"))
        return None if way is None or not _is_there(root, way) else "#" + point(*way).replace("%", "%25")


def localise(root: Object, text: bytes, *, dialect: tuple[int, int], url: str | None) -> Identifiers:
    """The names in a document, whose references by such a name now point to their place."""
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
        _settle(root, cast("dict[str, object]", spot.node), spot.base, found)
    return found


def _references(root: Object, found: Identifiers, *, reads_schemas: bool) -> Sequence[_Spot]:
    """Every object with a reference; the names that are met on the way are noted."""
    spots: list[_Spot] = []
    stack = [_Spot(root, "document", (), found.base)]
    while stack:
        spot = stack.pop()
        items = as_list(spot.node)
        if items is not None:
            stack += [_Spot(item, spot.kind, (*spot.way, str(index)), spot.base) for index, item in enumerate(items)]
        node = as_object(spot.node)
        if node is None:
            continue
        base = _note(node, spot, found) if reads_schemas and spot.kind == "schemas" else spot.base
        if isinstance(node.get("$ref", node.get("$dynamicRef")), str):
            spots.append(_Spot(node, spot.kind, spot.way, base))
        for key, value in node.items():
            kind = kind_of_member(spot.kind, key)
            if kind != LITERAL:
                stack.append(_Spot(value, kind, (*spot.way, key), base))
    return spots


def _note(node: Object, spot: _Spot, found: Identifiers) -> str:
    """Note what a schema calls itself; the URI that references in it start from."""
    base, own = spot.base, text_at(node, "$id")
    if own is not None and not own.startswith("#"):
        base, _ = _divide(base, own)
        found.resources.setdefault(base, spot.way)
    for keyword in ("$anchor", "$dynamicAnchor"):
        name = text_at(node, keyword)
        if name is not None:
            found.anchors.setdefault((base, name), spot.way)
    dynamic = text_at(node, "$dynamicAnchor")
    if dynamic is not None:
        found.dynamic[dynamic] = found.dynamic.get(dynamic, 0) + 1
    return base


def _settle(root: Object, node: dict[str, object], base: str, found: Identifiers) -> None:
    """Point to what the reference names, where it names something here; a dynamic one only where it has no choice."""
    ref = node.get("$ref")
    if isinstance(ref, str):
        node["$ref"] = found.locate(root, ref, base) or ref
        return
    dynamic = node["$dynamicRef"]
    if isinstance(dynamic, str) and found.dynamic.get(dynamic.rpartition("#")[2], 0) <= 1:
        place = found.locate(root, dynamic, base)
        if place is not None:
            del node["$dynamicRef"]
            node["$ref"] = place


def _divide(base: str, ref: str) -> tuple[str, str]:
    """The URI and the fragment of a reference."""
    if ref.startswith("#"):  # also where the base is no URL that others can be relative to
        return base, ref[1:]
    try:
        uri, fragment = urldefrag(urljoin(base, ref))
    except ValueError:
        return ref, ""
    return uri, fragment


def _is_there(root: object, way: _Way) -> bool:
    for token in way:
        root, found = find_step(root, token)
        if not found:
            return False
    return True
