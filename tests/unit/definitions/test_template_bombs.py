"""A hostile template, or hostile variables, end by the limits: counted, never timed."""

from typing import Any

import pytest

from gateway.definitions.templates.budget import RenderingBudget
from gateway.definitions.templates.limits import MAX_TEMPLATE_LENGTH
from gateway.definitions.templates.parser import parse_template
from gateway.definitions.templates.rendering import Rendering
from gateway.definitions.templates.template import Condition, Template, Tree
from gateway.errors import TemplateFailed, TemplateInvalid

BIG = "a" * 200_000
HOSTILE: dict[str, Any] = {
    "big": BIG,
    "same": "a" * 199_999 + "a",
    "rows": [{"a": number * 7919 % 10_007, "b": str(number)} for number in range(9_000)],
    "words": [str(number) for number in range(9_000)],
    "spoken": "a " * 60_000,
    "many": list(range(50_000)),
    "wide": {str(number): number for number in range(20_000)},
    "repeated": "a" * 2_499,
    "inner": "a" * 625 + "b" + "a" * 624,
    "percents": "%" * 20_000,
    "wider": "ΐ" * 20_000,
    "marks": "&'" * 20_000,
    "spaces": " " * 200_000,
}


def filled(unit: str) -> str:
    """The longest template that repeats this."""
    return unit * (MAX_TEMPLATE_LENGTH // len(unit))


@pytest.mark.parametrize(
    "source",
    [
        filled("{% if big contains 'zz' %}{% endif %}"),
        filled("{% if repeated contains inner %}{% endif %}"),
        filled("{% if big == same %}{% endif %}"),
        filled("{% if big < same %}{% endif %}"),
        filled("{% if many contains 'zz' %}{% endif %}"),
        filled("{% if spaces == blank %}{% endif %}"),
        "{% if big contains 'zz' %}{% endif %}" + "{% if no %}{% elsif big contains 'zz' %}{% endif %}" * 1_000,
        "{% if " + " or ".join(["big contains 'zz'"] * 2_000) + " %}{% endif %}",
        filled("{{ big | strip | size }}"),
        filled("{{ wider | upcase | size }}"),
        filled("{{ wider | url_encode | size }}"),
        filled("{{ percents | url_decode | size }}"),
        filled("{{ marks | escape | size }}"),
        filled("{{ repeated | remove: inner | size }}"),
        filled("{{ big | replace_first: 'b', 'c' | size }}"),
        filled("{{ spoken | truncatewords: 99999 | size }}"),
        filled("{{ words | json | size }}"),
        filled("{{ words | join | size }}"),
        filled("{{ many | slice: 0, 50000 | size }}"),
        "{{ wider" + "|downcase" * 5_000 + " }}",
    ],
)
def test_a_template_as_long_as_it_may_be_does_bounded_work(source: str) -> None:
    """Ours: many operations on large values are paid for by the values' sizes (TEN-5)."""
    assert len(source) <= MAX_TEMPLATE_LENGTH
    with pytest.raises(TemplateFailed, match="steps"):
        Template.parse(source).render(HOSTILE)


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'aa'" + "|replace:'a','aa'" * 100 + " }}",
        "{{ 'aa'" + "|append:big" * 100 + " }}",
        "{{ big | replace: 'a', big }}",
        "{{ big | truncate: 1, big | append: big }}",
        "{{ words | join: big }}",
        "{{ big | url_encode }}",
        "{{ big | escape }}",
        "{{ big | append: big }}",
        "{{ many | json }}",
    ],
)
def test_a_filter_makes_no_text_that_is_too_long(source: str) -> None:
    """Ours: growth is checked before the text is built, however small the filter and its values are (TEN-5)."""
    with pytest.raises(TemplateFailed, match="has more than"):
        Template.parse(source).render(HOSTILE)


@pytest.mark.parametrize("source", ["{{ big }}{{ big }}", "{{ rows | slice: 0, 5000 }}" * 3])
def test_the_output_is_bounded(source: str) -> None:
    """Ours: outputs are added up (TEN-5)."""
    with pytest.raises(TemplateFailed, match="output"):
        Template.parse(source).render(HOSTILE)


@pytest.mark.parametrize(
    "source",
    [filled("{{a}}"), filled("{{-5|abs}}"), filled("{% if a %}{% endif %}"), "{{ 5" + "|plus:5" * 8_000 + " }}"],
)
def test_a_template_of_small_values_is_no_bomb_at_any_length(source: str) -> None:
    """Ours: without loops the number of operations is at most the template's length."""
    Template.parse(source).render({})


@pytest.mark.parametrize(
    "source",
    [
        "{{ big | replace: '', big | size }}",
        "{{ big | replace_first: 'a', 'b' | size }}",
        "{{ words | first }}{{ words | last }}{{ words.size }}",
        "{{ many | slice: 49990, 10 }}",
        "{{ wide['7'] }}{{ wide.size }}",
        "{{ words | slice: 0, 1000 | join: ',' }}",
    ],
)
def test_big_variables_are_no_bomb(source: str) -> None:
    """Ours: the limits are on work, not on what an upstream answered."""
    assert Template.parse(source).render(HOSTILE)


@pytest.mark.parametrize(
    "source",
    [
        "{{ x.__class__ }}",
        "{{ x.__class__.__mro__ }}",
        "{{ x['__class__'] }}",
        "{{ x.keys }}",
        "{{ x.items.first }}",
        "{{ text.upper }}",
        "{{ text.__len__ }}",
        "{{ list.append }}",
        "{{ self }}{{ config }}{{ request }}{{ settings }}{{ __builtins__ }}{{ now }}{{ today }}",
    ],
)
def test_python_cannot_be_reached(source: str) -> None:
    """Ours: only what is given is in scope, and only as JSON (TEN-5)."""
    assert Template.parse(source).render({"x": {"a": 1}, "text": "t", "list": [1]}) == ""


@pytest.mark.parametrize(
    "tag",
    ["include 'x'", "render 'x'", "extends 'x'", "layout 'x'", "tablerow i in x", "cycle 'a'", "increment x", "liquid"],
)
def test_no_tag_reads_from_elsewhere(tag: str) -> None:
    """Ours: there are no files, partials or counters."""
    with pytest.raises(TemplateInvalid, match="unknown tag"):
        Template.parse("{% " + tag + " %}")


@pytest.mark.parametrize(
    "source",
    [
        "{{ a" + "[a" * 20 + "]" * 20 + " }}",
        "{% if x %}" * 21 + "{% endif %}" * 21,
        "x" * (64 * 1024 + 1),
        "x" * 1024 * 1024,
        "{{ 1234567890123456789012345 }}",
        "{{" * 30_000,
        "{% raw %}" * 7_000,
        "{% if x %}" * 6_000,
    ],
)
def test_a_template_is_bounded_before_it_runs(source: str) -> None:
    """Ours: length, nesting and numbers."""
    with pytest.raises(TemplateInvalid):
        Template.parse(source)


def test_a_value_that_holds_one_text_often_is_measured_before_it_is_written() -> None:
    """Ours: ten thousand references to one text are two gigabytes only when they are written."""
    shared = ["a" * 100_000] * 10_000

    with pytest.raises(TemplateFailed):
        Template.parse("{{ x | json }}").render({"x": shared})
    with pytest.raises(TemplateFailed):
        Tree.parse("{{ x }}").render({"x": shared})


def test_a_tree_shares_one_budget() -> None:
    """Ours: many small templates cost together what one large one costs."""
    tree = Tree.parse(["{{ x }}"] * 100)
    steep = Tree.parse(["{{ x | url_decode | size }}"] * 1_000)

    with pytest.raises(TemplateFailed, match="output"):
        tree.render({"x": "a" * 20_000})
    with pytest.raises(TemplateFailed, match="steps"):
        steep.render({"x": "a" * 20_000})


def test_a_steep_condition_is_refused() -> None:
    """Ours: conditions of steps have the same limits."""
    with pytest.raises(TemplateFailed):
        Condition.parse(" or ".join(["big contains 'zz'"] * 2_000)).holds(HOSTILE)


def test_the_steps_of_a_rendering_are_counted_alike_each_time() -> None:
    """Ours: the same template and variables come to the same end on any machine."""
    block = parse_template("{% if 1 < 2 %}{{ 'a' | upcase | append: 'b' }}{% endif %}" * 9)

    def fits(steps: int) -> bool:
        try:
            Rendering({}, RenderingBudget(steps=steps)).text(block)
        except TemplateFailed:
            return False
        return True

    needed = next(steps for steps in range(1_000) if fits(steps))

    assert 20 < needed < 200
    assert [fits(needed - 1), fits(needed)] == [False, True]
