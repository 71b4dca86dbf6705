"""Partial decoding of handler specs: the members that the registry needs before a handler is bound."""

import msgspec

from gateway.domain.primitives import Primitive
from gateway.domain.tools import Tool


class _Spec(msgspec.Struct):
    kind: str = ""
    completions: dict[str, msgspec.Raw] = {}


_decode = msgspec.json.Decoder(_Spec).decode


def kind_of(item: Tool | Primitive) -> str:
    """The kind of the item's handler; empty for an imported operation, for Python code, or if unreadable."""
    return _spec_of(item).kind


def has_completions(item: Primitive) -> bool:
    """True if the item's handler spec defines completions of arguments or variables."""
    return bool(_spec_of(item).completions)


def _spec_of(item: Tool | Primitive) -> _Spec:
    """Decode the handler spec. An unreadable spec counts as empty here; the primitive fails when it is used."""
    if not item.handler:
        return _Spec()
    try:
        return _decode(item.handler)
    except msgspec.MsgspecError:
        return _Spec()
