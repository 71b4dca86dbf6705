"""The part of a handler's declaration that the registry needs; binding reads the rest."""

import msgspec

from gateway.domain.primitives import Primitive
from gateway.domain.tools import Tool


class _Spec(msgspec.Struct):
    kind: str = ""
    completions: dict[str, msgspec.Raw] = {}


_decode = msgspec.json.Decoder(_Spec).decode


def kind_of(item: Tool | Primitive) -> str:
    """The kind of the item's handler; empty for an imported operation and for code."""
    return _spec_of(item).kind


def completes(item: Primitive) -> bool:
    """True if the item's declaration defines completions of arguments or variables."""
    return bool(_spec_of(item).completions)


def _spec_of(item: Tool | Primitive) -> _Spec:
    """Read the declaration. One that this version cannot read fails when it runs, and affects no other primitive."""
    if not item.handler:
        return _Spec()
    try:
        return _decode(item.handler)
    except msgspec.MsgspecError:
        return _Spec()
