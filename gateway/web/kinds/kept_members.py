"""Stored members that a PUT removes only with `If-Match` or `?replace=true`, and the refusal that names them.

PUT changed its meaning for some kinds: before, an absent member kept its value. The refusal protects clients that still
rely on this, and is removed with the next release.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Annotated, Any, cast

import msgspec
import orjson
from pydantic import Field

from gateway.domain.members.markers import Shape
from gateway.errors import Conflict, Fault
from gateway.kinds.members import Member, is_declared, settable
from gateway.web.kinds.limits import MAX_SHOWN_LENGTH
from gateway.web.models import BodyModel, QueryModel

_WAYS = "send `If-Match` or `?replace=true` to remove it, or PATCH to keep what is not sent"


class ReplaceQuery(QueryModel):
    """The permission of a PUT to remove stored members."""

    replace: Annotated[
        bool, Field(description="True permits the removal of stored rules and other members that are otherwise kept.")
    ] = False


def may_remove(query: QueryModel, expected: object) -> bool:
    """True if a request permits the removal: by its query, or because it names the version that it replaces."""
    return expected is not None or (isinstance(query, ReplaceQuery) and query.replace)


def refuse_losses(
    members: Sequence[Member], current: object, wanted: Mapping[str, Any], sent: AbstractSet[str]
) -> None:
    """Refuse a PUT that would remove elements of a stored list, or reset a member that was not sent.

    `sent` are the paths of the sent members, such as `limits.burst`.

    Raises:
        Conflict: it would; each fault names one element or member.
    """
    kept = [one for one in members if Shape.KEPT in one.marks and one.name in wanted]
    faults = [fault for one in kept for fault in _losses(one, getattr(current, one.name), wanted[one.name], sent)]
    if faults:  # guard: replacement-keeps-rules
        more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
        raise Conflict(f"{faults[0].pointer}: {faults[0].reason}{more}; {_WAYS}", faults=faults)


def sent_paths(body: BodyModel) -> AbstractSet[str]:
    """The paths of the sent members, such as `limits` and `limits.burst`."""
    sent = body.sent()
    nested = {name: value.sent() for name, value in sent.items() if isinstance(value, BodyModel)}
    return sent.keys() | {f"{name}.{inner}" for name, members in nested.items() for inner in members}


def _losses(member: Member, stored: Any, value: Any, sent: AbstractSet[str]) -> Iterator[Fault]:
    name = member.name
    is_list = type(stored) is type(value) is tuple
    if is_list:
        for index, each in enumerate(stored):
            if each not in value:
                yield Fault(pointer=f"/{name}/{index}", reason=f"would remove {_show(each)}")
    elif is_declared(member.hint):
        for part in settable(member.hint):
            before, after = getattr(stored, part.name), getattr(value, part.name)
            if f"{name}.{part.name}" not in sent and before != after:
                yield Fault(pointer=f"/{name}/{part.name}", reason=_reset(before, after))
    elif name not in sent and stored != value:
        yield Fault(pointer=f"/{name}", reason=_reset(stored, value))


def _reset(stored: object, value: object) -> str:
    return f"would replace {_show(stored)} by {_show(value)}"


def _show(value: object) -> str:
    """A value as JSON, at most 200 characters; empty members of an object are omitted."""
    plain: object = msgspec.to_builtins(value)
    if isinstance(plain, dict):
        members = cast("dict[str, object]", plain)
        plain = {name: member for name, member in members.items() if member}
    text = orjson.dumps(plain).decode()
    return text if len(text) <= MAX_SHOWN_LENGTH else f"{text[:MAX_SHOWN_LENGTH]}…"
