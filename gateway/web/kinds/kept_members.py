"""Stored members that a PUT removes only with `If-Match` or `?replace=true`, and the refusal that names them.

PUT changed its meaning for some kinds: before, an absent member kept its value. The refusal protects clients that still
rely on this, and is removed with the next release.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Annotated, Any, cast

import orjson
from pydantic import Field

from gateway.domain.members.markers import Shape
from gateway.errors import Conflict, Fault
from gateway.kinds.members import Member
from gateway.web.models import QueryModel

_MAX_SHOWN = 200
_WAYS = "send `If-Match` or `?replace=true` to remove it, or PATCH to keep what is not sent"


class ReplaceQuery(QueryModel):
    """The permission of a PUT to remove stored members."""

    replace: Annotated[
        bool, Field(description="True permits the removal of stored rules and other members that are otherwise kept.")
    ] = False


def refuse_losses(
    members: Sequence[Member], current: object, wanted: Mapping[str, Any], sent: AbstractSet[str]
) -> None:
    """Refuse a PUT that would remove elements of a stored list, or reset a member that was not sent.

    Raises:
        Conflict: it would; each fault names one element or member.
    """
    faults: list[Fault] = []
    for one in members:
        if Shape.KEPT not in one.marks or one.name not in wanted:
            continue
        stored: object = getattr(current, one.name)
        value: object = wanted[one.name]
        if isinstance(stored, tuple) and isinstance(value, tuple):
            elements, kept = cast("tuple[object, ...]", stored), cast("tuple[object, ...]", value)
            lost = [(index, each) for index, each in enumerate(elements) if each not in kept]
            faults += [Fault(pointer=f"/{one.name}/{index}", reason=f"would remove {_show(e)}") for index, e in lost]
        elif one.name not in sent and stored != value:
            faults.append(Fault(pointer=f"/{one.name}", reason=f"would replace {_show(stored)} by {_show(value)}"))
    if faults:  # guard: replacement-keeps-rules
        more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
        raise Conflict(f"{faults[0].pointer}: {faults[0].reason}{more}; {_WAYS}", faults=faults)


def _show(value: object) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
