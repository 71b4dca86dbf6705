"""As much of a handler's declaration as the registry has to know; the rest is for whoever binds it."""

import msgspec

from gateway.domain.primitives import Primitive
from gateway.domain.tools import Tool


class _Spec(msgspec.Struct):
    kind: str = ""
    completions: dict[str, msgspec.Raw] = {}


_decode = msgspec.json.Decoder(_Spec).decode


def kind_of(item: Tool | Primitive) -> str:
    """The kind of its handler; empty for an imported operation and for code."""
    return _spec_of(item).kind


def completes(item: Primitive) -> bool:
    """Whether its declaration says how arguments or variables are completed."""
    return bool(_spec_of(item).completions)


def _spec_of(item: Tool | Primitive) -> _Spec:
    """A declaration that this version cannot read fails when it runs, and takes nothing else with it."""
    if not item.handler:
        return _Spec()
    try:
        return _decode(item.handler)
    except msgspec.MsgspecError:
        return _Spec()
