"""Names that collide get numbers, each of which is tried once."""

import sys

from gateway.domain.listed.arguments import renamed_arguments
from gateway.domain.listed.references import ReferenceTargets


def test_colliding_arguments_have_the_lowest_free_number() -> None:
    """Ours: a name is the stored one where it can be, else it has a number (TDF-2)."""
    names = ["a b", "a-b", "a\tb", "a_b_2", "a\nb"]
    assert renamed_arguments(names) == {"a b": "a_b", "a\tb": "a_b_3", "a\nb": "a_b_4"}
    assert renamed_arguments(["é" * 70, "è" * 70]) == {"é" * 70: "_" * 64, "è" * 70: "_" * 62 + "_2"}


def test_thousands_of_colliding_names_cost_as_many_steps() -> None:
    """Attack: a tool whose arguments all want one name held the event loop for seconds (RES-1)."""
    names = [chr(0x4E00 + number) for number in range(5000)]
    schema: dict[str, object] = {"a": {name: {"b": {"type": "string"}} for name in names}}
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    sys.setprofile(count)
    try:
        renamed = renamed_arguments(names)
        targets = ReferenceTargets(schema)
        named = {targets.name_of(f"#/a/{name}/b") for name in names}
    finally:
        sys.setprofile(None)

    assert len({*renamed.values()}) == len(named) == 5000
    assert steps < 1_000_000  # before, numbering alone took 12.5 million steps
