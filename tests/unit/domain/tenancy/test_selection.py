"""Selection by a profile's rules."""

import pytest

from gateway.domain.identifiers import PrimitiveId, ProfileId
from gateway.domain.primitives import Family, Primitive
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.profiles import Profile, Rule
from gateway.domain.tenancy.selection import compile_selection
from gateway.domain.tools import PrimitiveOrigin, Tool

LIST_PETS = Tool(
    name="list_pets",
    definition=b"{}",
    safety=Safety.SAFE,
    safety_reasons=(),
    origin=PrimitiveOrigin.SOURCE,
    source_name="petstore",
    identity="GET /pets",
    tags=("pets", "read"),
)
DELETE_PET = Tool(
    name="delete_pet",
    definition=b"{}",
    safety=Safety.DANGEROUS,
    safety_reasons=(),
    origin=PrimitiveOrigin.SOURCE,
    source_name="petstore",
    identity="DELETE /pets/{id}",
    tags=("pets",),
)
GREET = Tool(name="greet", definition=b"{}", safety=Safety.SAFE, safety_reasons=(), origin=PrimitiveOrigin.CUSTOM)
README = Primitive(id=PrimitiveId("res_1"), family=Family.RESOURCE, name="docs://readme", definition=b"{}")
ROWS = Primitive(id=PrimitiveId("tpl_1"), family=Family.TEMPLATE, name="db://rows/{id}", definition=b"{}")
REVIEW = Primitive(id=PrimitiveId("pro_1"), family=Family.PROMPT, name="review", definition=b"{}", safety=Safety.SAFE)
ALL = (LIST_PETS, DELETE_PET, GREET, README, ROWS, REVIEW)


def _selected(*, include: tuple[Rule, ...] = (), exclude: tuple[Rule, ...] = ()) -> list[str]:
    shows = compile_selection(Profile(id=ProfileId("prf_1"), name="some", include=include, exclude=exclude))
    return [item.name for item in ALL if shows(item)]


@pytest.mark.parametrize(
    ("rule", "selected"),
    [
        (Rule(), [item.name for item in ALL]),
        (Rule(names=("list_*",)), ["list_pets"]),
        (Rule(names=("LIST_*",)), []),
        (Rule(names=("docs://*", "review")), ["docs://readme", "review"]),
        (Rule(names=("db://rows/[{]id}",)), ["db://rows/{id}"]),
        (Rule(names=("*_pet?",)), ["list_pets"]),
        (Rule(sources=("petstore",)), ["list_pets", "delete_pet"]),
        (Rule(sources=("elsewhere",)), []),
        (Rule(tags=("read",)), ["list_pets"]),
        (Rule(tags=("read", "pets")), ["list_pets", "delete_pet"]),
        (Rule(methods=("get",)), ["list_pets"]),
        (Rule(methods=("GET", "DELETE")), ["list_pets", "delete_pet"]),
        (Rule(safety=(Safety.DANGEROUS,)), ["delete_pet"]),
        (Rule(families=(Family.TOOL,)), ["list_pets", "delete_pet", "greet"]),
        (Rule(families=(Family.RESOURCE, Family.TEMPLATE)), ["docs://readme", "db://rows/{id}"]),
        (Rule(families=(Family.TOOL,), safety=(Safety.SAFE,), tags=("pets",)), ["list_pets"]),
    ],
)
def test_a_rule_selects_primitives_that_meet_every_member(rule: Rule, selected: list[str]) -> None:
    """Ours: every member of a rule narrows, a rule with none selects everything (CAP-1)."""
    assert _selected(include=(rule,)) == selected


def test_without_rules_everything_is_selected() -> None:
    """Ours: no include rule means everything."""
    assert _selected() == [item.name for item in ALL]


def test_several_include_rules_add_up() -> None:
    """Ours: one include rule that matches is enough."""
    assert _selected(include=(Rule(names=("greet",)), Rule(families=(Family.PROMPT,)))) == ["greet", "review"]


def test_an_exclude_rule_wins() -> None:
    """Ours: a primitive that an exclude rule matches is out, whatever includes it."""
    tools = Rule(families=(Family.TOOL,))

    assert _selected(include=(tools,), exclude=(Rule(safety=(Safety.DANGEROUS,)),)) == ["list_pets", "greet"]
    assert _selected(exclude=(Rule(),)) == []


def test_a_pattern_of_many_stars_costs_no_more_than_a_name() -> None:
    """Ours: a tenant's pattern cannot stop the gateway, whatever it is matched with (TEN-5)."""
    bomb = Rule(names=("*a" * 100 + "*b",))
    long = Tool(name="a" * 5000, definition=b"{}", safety=Safety.SAFE, safety_reasons=(), origin=PrimitiveOrigin.CUSTOM)

    assert not compile_selection(Profile(id=ProfileId("prf_1"), name="some", include=(bomb,)))(long)
