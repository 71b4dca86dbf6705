"""Members that a PUT removes only if the request permits it."""

from dataclasses import dataclass
from typing import Annotated

import pytest

from gateway.domain.members.markers import About, Shape
from gateway.errors import Conflict
from gateway.kinds.members import settable
from gateway.web.kinds.kept_members import refuse_losses


@dataclass(frozen=True, kw_only=True)
class Door:
    """An object with members of each treatment."""

    rules: Annotated[tuple[str, ...], About("Rules."), Shape.KEPT] = ()
    lock: Annotated[str, About("The lock."), Shape.KEPT] = "open"
    color: Annotated[str, About("The color.")] = "white"


STORED = Door(rules=("a", "b"), lock="closed", color="red")


@pytest.mark.parametrize(
    ("wanted", "sent", "places"),
    [
        (Door(), set[str](), ["/rules/0", "/rules/1", "/lock"]),
        (Door(rules=("b", "c")), {"rules", "lock"}, ["/rules/0"]),
        (Door(rules=("b", "a", "c"), lock="closed"), {"rules", "lock"}, []),
        (Door(rules=("a", "b")), {"rules", "lock"}, []),
    ],
)
def test_a_replacement_names_removed_members(wanted: Door, sent: set[str], places: list[str]) -> None:
    """Ours: a PUT of an older client removes no stored rule, and no restriction that it does not mention (ADM-1)."""
    members = settable(Door)
    values = {one.name: getattr(wanted, one.name) for one in members}
    if not places:
        refuse_losses(members, STORED, values, sent)
        return
    with pytest.raises(Conflict, match="If-Match") as refused:
        refuse_losses(members, STORED, values, sent)
    assert [fault.pointer for fault in refused.value.faults] == places
