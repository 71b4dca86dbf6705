"""Whether a hostile template, or hostile variables, come to an end by the limits: counted, never timed."""

from typing import Any

import pytest

from gateway.definitions.templates.liquid.budget import RenderingBudget, RenderingLimits
from gateway.definitions.templates.liquid.rendering import Rendering
from gateway.definitions.templates.template import Condition, Template, Tree
from gateway.errors import TemplateFailed, TemplateInvalid

BIG = "a" * 200_000
HOSTILE: dict[str, Any] = {
    "big": BIG,
    "same": "a" * 199_999 + "a",
    "bigs": [BIG],
    "rows": [{"a": number * 7919 % 10_007, "b": str(number)} for number in range(9_000)],
    "words": [str(number) for number in range(9_000)],
    "many": list(range(50_000)),
    "wide": {str(number): number for number in range(20_000)},
    "deep": None,
}


def loop(body: str, count: int = 9_999) -> str:
    return "{% for i in (1.." + str(count) + ") %}" + body + "{% endfor %}"


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in (1..1000000000) %}{% endfor %}",
        "{% for i in (-9..99999) %}{% endfor %}",
        loop(loop("")),
        loop("") * 2,
        loop("x" * 100),
        loop("{% if false %}{% endif %}" * 2_000),
        loop("{% if big contains 'zz' %}{% endif %}"),
        loop("{% if big == same %}{% endif %}"),
        loop("{% if many contains 'zz' %}{% endif %}"),
        loop("{% assign y = big | strip %}"),
        loop("{% assign y = big | downcase %}"),
        loop("{% assign y = rows | sort: 'a' %}"),
        loop("{% assign y = rows | json %}"),
        loop("{% assign y = rows | where: 'a', 5 %}"),
        loop("{% assign y = words | uniq %}"),
        loop("{% assign y = words | join %}"),
        loop("{% assign y = big | split: '' %}"),
        loop("{% assign y = big | slice: 0, 100000 %}"),
        loop("{% assign y = words | slice: 0, 9000 %}"),
        loop("{% assign y = words | reverse | concat: words %}"),
        loop("{% assign y = words | map: 'a' | compact | sum %}"),
        loop("{% for r in rows %}{{ r.b }}{% endfor %}", 2_000),
        "{% if " + " or ".join(["big contains 'zz'"] * 2_000) + " %}{% endif %}",
        "{% assign x = 'aaaaaaaaaa' %}" + loop("{% assign x = x | append: x %}", 100),
        "{% assign x = 'aaaaaaaaaa' %}" + loop("{% assign x = x | replace: 'a', x %}", 100),
        "{% assign x = 'abc' | split: '' %}" + loop("{% assign x = x | concat: x %}", 100),
        "{% assign x = bigs | reverse %}" + loop("{% assign x = x | concat: x %}", 12) + "{{ x }}",
        "{% capture x %}" + loop("x" * 1_000) + "{% endcapture %}",
        "{% assign n = 9 %}" + loop("{% assign n = n | times: n %}", 900),
        "{{ big | replace: 'a', big }}",
        "{{ big | split: '' | join: big }}",
        "{{ words | join: big }}",
        "{{ big | url_encode }}",
        "{{ big | escape }}",
        "{{ big | append: big }}",
        "{{ many | reverse }}",
        "{% for pair in wide %}{% endfor %}",
        "{{ rows }}{{ rows }}",
        "".join(f"{{% assign v{number} = big | strip %}}" for number in range(8)),
    ],
)
def test_a_bomb_ends_by_a_limit(source: str) -> None:
    """Ours: loops, output, growth and dear filters are all paid for (TEN-5)."""
    with pytest.raises(TemplateFailed):
        Template.parse(source).render(HOSTILE)


@pytest.mark.parametrize(
    "source",
    [
        "{{ big | replace: '', big | size }}",
        "{{ big | replace_first: 'a', 'b' | size }}",
        "{{ words | first }}{{ words | last }}{{ words.size }}",
        "{% for word in words limit: 10 %}{{ word }}{% endfor %}",
        "{% for number in many offset: 49990 %}{{ number }}{% endfor %}",
        "{{ wide['7'] }}{{ wide.size }}",
        "{{ rows | where: 'b', '5' | map: 'a' | join: ',' }}",
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
    with pytest.raises(TemplateInvalid, match="there is no tag"):
        Template.parse("{% " + tag + " %}")


@pytest.mark.parametrize(
    "source",
    [
        "{{ a" + "[a" * 20 + "]" * 20 + " }}",
        "{% if x %}" * 21 + "{% endif %}" * 21,
        "x" * (64 * 1024 + 1),
        "{{ 1234567890123456789012345 }}",
    ],
)
def test_a_template_is_bounded_before_it_runs(source: str) -> None:
    """Ours: length, nesting and numbers."""
    with pytest.raises(TemplateInvalid):
        Template.parse(source)


def test_a_value_that_holds_one_text_often_is_measured_before_it_is_written() -> None:
    """Ours: ten thousand references to one text are two gigabytes only when somebody writes them."""
    shared = ["a" * 100_000] * 10_000

    with pytest.raises(TemplateFailed):
        Template.parse("{{ x | json }}").render({"x": shared})
    with pytest.raises(TemplateFailed):
        Tree.parse("{{ x }}").render({"x": shared})


def test_a_tree_shares_one_budget() -> None:
    """Ours: many small templates cost together what one large one costs."""
    tree = Tree.parse(["{{ x }}"] * 100)

    with pytest.raises(TemplateFailed, match="output"):
        tree.render({"x": "a" * 20_000})


def test_a_steep_condition_is_refused() -> None:
    """Ours: conditions of steps have the same limits."""
    with pytest.raises(TemplateFailed):
        Condition.parse(" or ".join(["big contains 'zz'"] * 2_000)).holds(HOSTILE)


def test_the_steps_of_a_rendering_are_counted_alike_each_time() -> None:
    """Ours: the same template and variables come to the same end on any machine."""
    block = Template.parse("{% for i in (1..9) %}{{ i | plus: 1 }}{% endfor %}").block

    def fits(steps: int) -> bool:
        try:
            Rendering({}, RenderingBudget(RenderingLimits(steps=steps))).text(block)
        except TemplateFailed:
            return False
        return True

    needed = next(steps for steps in range(1_000) if fits(steps))

    assert 20 < needed < 200
    assert [fits(needed - 1), fits(needed)] == [False, True]
