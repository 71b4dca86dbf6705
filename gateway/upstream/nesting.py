"""Which field plans stand inside which: a name is the way to a field, its steps divided by a control character.

No part and no form field can have that character in its name. The first step of a field without a name, a member of
an array, is its position.
"""

from collections.abc import Sequence
from dataclasses import replace

from gateway.domain.plans import FieldPlan

_STEP = "\x1f"


def is_inner(field: FieldPlan) -> bool:
    """Whether the field stands inside another one."""
    return _STEP in field.name


def fields_inside(fields: Sequence[FieldPlan], name: str) -> tuple[FieldPlan, ...]:
    """The fields that stand inside the one of this name, called as they are there."""
    start = name + _STEP
    return tuple(
        replace(field, name=field.name.removeprefix(start)) for field in fields if field.name.startswith(start)
    )
