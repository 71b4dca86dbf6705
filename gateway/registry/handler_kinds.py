"""The members of a handler's declaration that the registry needs; binding reads the complete declaration."""

import msgspec

from gateway.domain.primitives import Primitive
from gateway.domain.tools import Tool


class _Spec(msgspec.Struct):
    kind: str = ""
    completions: dict[str, msgspec.Raw] = {}


_decode = msgspec.json.Decoder(_Spec).decode


def kind_of(item: Tool | Primitive) -> str:
    """The kind of the item's handler; empty for an imported operation, for code, and if unreadable."""
    return _spec_of(item).kind


def completes(item: Primitive) -> bool:
    """True if the item's declaration defines completions of arguments or variables."""
    return bool(_spec_of(item).completions)


def _spec_of(item: Tool | Primitive) -> _Spec:
    """Decode the declaration. An unreadable one is treated as empty here; it fails only when its primitive is used."""
    if not item.handler:
        return _Spec()
    try:
        return _decode(item.handler)
    except msgspec.MsgspecError:
        return _Spec()
