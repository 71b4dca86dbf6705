"""Records read from rows, and written to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from gateway.domain.members.markers import StoredAs
from gateway.store.kinds.record_rows import columns_of, read_record


class Color(StrEnum):
    """A color of paint."""

    RED = "red"


@dataclass(frozen=True, kw_only=True)
class Coat:
    """A coat of paint on a door."""

    door: Annotated[str, StoredAs("door_id")]
    color: Color | None
    layers: tuple[Color, ...] = ()
    tools: frozenset[str] = frozenset()
    price: int | None = None


COAT = Coat(door="d1", color=Color.RED, layers=(Color.RED,), tools=frozenset({"brush"}), price=3)


def test_a_record_is_read_from_the_columns_of_its_members() -> None:
    """Ours: lists, sets and enumerations have their types again, and other columns are ignored (ISO-1)."""
    row: Mapping[str, Any] = {"door_id": "d1", "color": "red", "layers": ["red"], "tools": ["brush"], "more": 1}

    read = read_record(Coat, row, price=3)

    assert read == COAT
    assert [type(one) for one in (read.color, *read.layers)] == [Color, Color]


def test_a_record_is_written_to_the_columns_of_its_members() -> None:
    """Ours: the database gets lists and plain values, and no member that is left out (ISO-1)."""
    written = columns_of(COAT, "price", "tools")

    assert written == {"door_id": "d1", "color": "red", "layers": ["red"]}
    assert type(written["color"]) is str
