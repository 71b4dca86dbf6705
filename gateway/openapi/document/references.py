"""The resolver of `$ref`: only targets in the same document; nothing is ever fetched."""

import re
from collections import deque
from typing import cast
from urllib.parse import unquote

from gateway.domain.json_access import Object, as_list, as_object, point, tokens_of
from gateway.openapi.document.json_access import Unusable, list_at, quote_text
from gateway.openapi.document.limits import MAX_REFERENCE_CHAIN

PARAMETERS = "parameters"
_REMEDY = "upload the files together as an archive, or have the operator allow its host (`GATEWAY_REFERENCE_HOSTS`)"
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


class ExternalReference(Unusable):
    """A reference that leaves the document."""


class References:
    """The local references of one document; resolved targets are cached."""

    def __init__(self, root: Object) -> None:
        self._root = root
        self._found: dict[str, object] = {}

    def target(self, ref: str) -> object:
        """Return the target of the reference.

        Raises:
            ExternalReference: it leaves the document.
            Unusable: the target does not exist, or the reference names an anchor.
        """
        if ref not in self._found:
            self._found[ref] = self._find(ref)
        return self._found[ref]

    def canonical(self, ref: str) -> str:
        """Return the canonical spelling, equal for all spellings of the same pointer."""
        return "#" + point(*ref_tokens(ref))

    def follow(self, node: object, what: str) -> Object:
        """Return the node, or the object at the end of its chain of references; `what` names it in messages.

        Raises:
            ExternalReference: the chain leaves the document.
            Unusable: a target does not exist or is an anchor, or the chain does not end in an object.
        """
        for _ in range(MAX_REFERENCE_CHAIN):
            found = as_object(node)
            if found is None:
                raise Unusable(f"{what} is not an object")
            ref = found.get("$ref")
            if not isinstance(ref, str):
                return found
            node = self.target(ref)
        raise Unusable(f"{what} is a circular reference")

    def _find(self, ref: str) -> object:
        if not ref.startswith("#"):  # guard: external-references
            raise ExternalReference(f"{quote_text(ref)} is outside the document; {_REMEDY}")
        if ref != "#" and not ref.startswith("#/"):
            raise Unusable(f"{quote_text(ref)} refers to an anchor, which is not supported")
        node: object = self._root
        for token in ref_tokens(ref):
            node, is_there = find_step(node, token)
            if not is_there:
                raise Unusable(f"{quote_text(ref)} does not exist in the document")
        return node


def merge_path_item(target: Object, item: Object) -> dict[str, object]:
    """Return a path item in which the members beside its reference override those of the target.

    Parameters of both are kept. A later one replaces an earlier one of the same name when the operation is read.
    """
    merged = {**target, **{key: value for key, value in item.items() if key != "$ref"}}
    shared = [*list_at(target, PARAMETERS), *list_at(item, PARAMETERS)]
    return merged | ({PARAMETERS: shared} if shared else {})


def is_beside_reference(target: Object, waiting: deque[str]) -> bool:
    """True if the next token is the index of a parameter beside the reference to `target`, in the merged path item.

    The token becomes its index in the list of the object with the reference.
    """
    if not waiting or not waiting[0].isdecimal():
        return False
    own = int(waiting[0]) - len(list_at(target, PARAMETERS))
    if own >= 0:
        waiting[0] = str(own)
    return own >= 0


def ref_tokens(ref: str) -> list[str]:
    """Return the tokens of the pointer in a local reference."""
    return tokens_of(unquote(ref[1:]))


def find_step(node: object, token: str) -> tuple[object, bool]:
    """Follow one token of a pointer; return the value, and True if it exists."""
    if isinstance(node, dict):
        mapping = cast("Object", node)  # its keys are not converted: one lookup must not cost a pass over a large map
        return mapping.get(token), token in mapping
    items = as_list(node)
    if items is not None and _INDEX.fullmatch(token) and int(token) < len(items):
        return items[int(token)], True
    return None, False
