"""Level of a primitive once everything counts that its handler depends on."""

import random
from dataclasses import replace

import pytest

from gateway.catalog.primitives.safety import settle_levels
from gateway.domain.identifiers import PrimitiveId
from gateway.domain.primitives import Family, Primitive, refer_to_operation
from gateway.domain.tenancy.policy import Safety

SAFE, MODERATE, DANGEROUS = Safety.SAFE, Safety.MODERATE, Safety.DANGEROUS


def _tool(name: str, level: Safety = SAFE, *calls: str, override: Safety | None = None) -> Primitive:
    return Primitive(
        id=PrimitiveId(f"tol_{name}"),
        family=Family.TOOL,
        name=name,
        definition=b"{}",
        safety=override or level,
        safety_reasons=(f"{name} itself",),
        override=override,
        assessed=level,
        refers=tuple(f"tool:{call}" for call in calls),
    )


def _levels(*primitives: Primitive, **imported: Safety) -> dict[str, Safety]:
    found = settle_levels(primitives, {f"tool:{name}": level for name, level in imported.items()})
    return {primitive.name: primitive.safety for primitive in found}


def test_a_primitive_without_calls_keeps_its_level() -> None:
    """Ours: the level that was found when it was stored counts (SAF-1)."""
    primitives = [_tool("a", MODERATE), _tool("b")]
    assert settle_levels(primitives, {}) == primitives


def test_a_chain_of_calls_is_as_harmful_as_its_worst_part() -> None:
    """Ours: steps are the highest of their parts, however far down these are (SAF-1)."""
    found = _levels(_tool("a", SAFE, "b"), _tool("b", SAFE, "c"), _tool("c", SAFE, "d", "e"), d=DANGEROUS, e=MODERATE)
    assert found == {"a": DANGEROUS, "b": DANGEROUS, "c": DANGEROUS}


@pytest.mark.parametrize("worst", ["a", "b", "c"])
def test_a_circle_of_calls_is_one_level(worst: str) -> None:
    """Ours: tools that call each other are all as harmful as the worst of them (SAF-1)."""
    levels = {name: DANGEROUS if name == worst else SAFE for name in "abc"}
    found = _levels(
        _tool("a", levels["a"], "b"), _tool("b", levels["b"], "c"), _tool("c", levels["c"], "a"), _tool("d", SAFE, "a")
    )
    assert set(found.values()) == {DANGEROUS}


def test_a_declared_level_counts_for_every_caller() -> None:
    """Ours: `safety` beside the definition overrides what would be found, for callers too (SAF-1)."""
    found = settle_levels([_tool("a", SAFE, "b"), _tool("b", DANGEROUS, override=SAFE)], {})
    assert [one.safety for one in found] == [SAFE, SAFE]
    assert found[1].safety_reasons[0] == "declared by the tenant; the assessed level is dangerous"


def test_an_absent_tool_counts_as_moderate() -> None:
    """Ours: nothing is known of a tool that is gone, so a call of it is not safe (SAF-1)."""
    [found] = settle_levels([_tool("a", SAFE, "gone")], {})
    assert (found.safety, found.safety_reasons) == (MODERATE, ("a itself", "calls gone, which is moderate"))


def test_a_pinned_operation_brings_its_level_to_every_family() -> None:
    """Ours: a prompt or resource is as harmful as the operation behind it (SAF-1)."""
    reference = refer_to_operation("pets", "DELETE /pets/{id}")
    primitive = replace(_tool("x"), family=Family.PROMPT, refers=(reference, "credential:c"))
    [found] = settle_levels([primitive], {reference: DANGEROUS})
    assert found.safety is DANGEROUS
    assert found.safety_reasons == ("x itself", "calls DELETE /pets/{id} of pets, which is dangerous")


def test_a_long_chain_in_any_order_is_settled() -> None:
    """Ours: thousands of tools that call each other are no more than a walk over them."""
    chain = [_tool(f"t{number}", SAFE, f"t{number + 1}") for number in range(5_000)] + [_tool("t5000", DANGEROUS)]
    random.Random(7).shuffle(chain)
    assert {one.safety for one in settle_levels(chain, {})} == {DANGEROUS}
