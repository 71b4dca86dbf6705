"""Response models of classes whose members declare them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from gateway.domain.members.markers import About, ShownAs
from gateway.web.kinds.annotations import make_model, page_model, shown_model


@dataclass(frozen=True, kw_only=True)
class Hinge:
    """A part of a door."""

    size: Annotated[int, ShownAs("size_mm"), About("The size.")]
    maker: str = "unknown"


@dataclass(frozen=True, kw_only=True)
class FrontDoor:
    """A door to the street."""

    stem: ClassVar[str] = "Door"
    hinges: Annotated[Sequence[Hinge], About("The hinges.")]
    pair: Annotated[tuple[str, int], About("Two values.")] = ("a", 1)
    key: str = "secret"

    @property
    def is_heavy(self) -> Annotated[bool, About("True for three hinges.")]:
        """True for three hinges or more."""
        return len(self.hinges) > 2

    @property
    def color(self) -> str:
        """No part of the outside form."""
        return "red"


DOOR = FrontDoor(hinges=[Hinge(size=40)] * 3)
SHOWN = {"hinges": [{"size_mm": 40}] * 3, "pair": ("a", 1), "is_heavy": True}


def test_a_response_has_the_described_members_and_properties_under_their_outside_names() -> None:
    """Ours: nothing without a description leaves the gateway, and a property is shown like a member (ADM-1)."""
    model = shown_model(FrontDoor)
    schema = model.model_json_schema(mode="serialization")

    assert model.__name__ == "DoorShown"
    assert shown_model(FrontDoor, "Listed").__name__ == "DoorListed"
    assert model.of(DOOR).model_dump() == SHOWN
    assert schema["description"] == "A door to the street."
    assert set(schema["required"]) == {"hinges", "pair", "is_heavy"}
    assert schema["$defs"]["HingeShown"]["properties"]["size_mm"]["description"] == "The size."


def test_a_response_takes_more_fields_than_its_object_has() -> None:
    """Ours: a field that another object gives is added without a copy of the others (ADM-1)."""
    model = make_model("NamedDoor", shown_model(FrontDoor), "A door with a name.", {"name": (str, ...)})
    hinge = make_model("NamedHinge", shown_model(Hinge), "A hinge with a name.", {"name": (str, ...)})
    page = page_model("DoorPage", model, "One page of doors.")

    shown = model.of(DOOR, name="front")

    assert shown.model_dump() == {**SHOWN, "name": "front"}
    assert hinge.of(Hinge(size=3), name="left").model_dump() == {"size_mm": 3, "name": "left"}
    assert page(items=[shown], next_cursor=None).model_dump()["items"] == [shown.model_dump()]
