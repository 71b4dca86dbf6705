"""Templates have the meaning that Liquid defines."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.definitions.templates.filters import FILTERS
from gateway.definitions.templates.template import Condition, Template, Tree
from gateway.errors import BadInput, TemplateFailed, TemplateInvalid

SHOP: dict[str, Any] = {
    "name": "Ann",
    "age": 30,
    "price": 1.5,
    "yes": True,
    "no": False,
    "none": None,
    "text": "",
    "list": ["b", "a", "c"],
    "users": [{"n": "x", "age": 3, "on": True}, {"n": "y", "age": 1}, {"n": "z", "age": 2, "on": False}],
    "user": {"name": {"first": "Bo"}, "size": 7, "tags": ["t"], "a b": "c"},
    "key": "name",
    "html": "<a href='x'>&\"</a>",
    "vast": [10**30],
}


@pytest.mark.parametrize(
    ("source", "reported"),
    [
        ("plain", "plain"),
        ("", ""),
        ("{{ name }}", "Ann"),
        ("{{name}}", "Ann"),
        ("{{ missing }}{{ none }}{{ user.missing.deeper }}{{ list[9] }}{{ name.x }}", ""),
        ("{{ yes }} {{ no }} {{ age }} {{ price }}", "true false 30 1.5"),
        ("{{ 'text' }} {{ \"it's\" }} {{ 5 }} {{ -1.5 }} {{ true }} {{ nil }}", "text it's 5 -1.5 true "),
        ("{{ user.name.first }} {{ user['name'].first }} {{ user[key].first }} {{ user['a b'] }}", "Bo Bo Bo c"),
        ("{{ list[0] }} {{ list[-1] }} {{ list.first }} {{ list.last }} {{ list.size }}", "b c b c 3"),
        ("{{ user.size }} {{ name.size }} {{ user.tags.size }} {{ users[1].size }}", "7 3 1 2"),
        ("{{ list }} {{ user.name }}", '["b","a","c"] {"first":"Bo"}'),
        ("{{ empty }}{{ blank }}", ""),
        ("a {{- name -}} b", "aAnnb"),
        ("a\n{%- if yes -%}\n b \n{%- endif -%}\n c", "abc"),
        ("{% raw %}{{ name }} {% if %}{% endraw %}", "{{ name }} {% if %}"),
        ("{% raw %}{% for x in y %}{% endraw %}", "{% for x in y %}"),
        ("{% raw %}{% endraw %}{{ '{{' }}{{ '%}' }}", "{{%}"),
        ("a {%- raw -%} {{ x }} {%- endraw -%} b", "a{{ x }}b"),
        ("a{% comment %}{{ broken {% nope %}{% endcomment %}b", "ab"),
        ("{% if yes %}1{% endif %}{% if no %}2{% endif %}{% if none %}3{% endif %}{% if text %}4{% endif %}", "14"),
        ("{% if no %}a{% elsif age > 20 %}b{% else %}c{% endif %}", "b"),
        ("{% if no %}a{% elsif no %}b{% else %}c{% endif %}", "c"),
        ("{% if no %}a{% elsif no %}b{% endif %}", ""),
        ("{% if yes %}{% if no %}a{% else %}b{% endif %}c{% endif %}", "bc"),
        ("{%\nif\tyes\n%}a{%\nendif\n%}", "a"),
        ("{% if blank == text and list != empty and empty != list %}y{% endif %}", "y"),
        ("{% if age >= 30 and age <= 30 and age < 31 and age > 29 and age != 29 and age <> 1 %}y{% endif %}", "y"),
        ("{% if true or false and false %}right{% endif %}", "right"),
        ("{% if name contains 'nn' and list contains 'a' and user contains 'name' %}y{% endif %}", "y"),
        ("{% if none contains 'a' or list contains 'zz' or user contains 5 %}y{% else %}n{% endif %}", "n"),
        ("{% if 'a' < 'b' and none < 1 %}y{% else %}n{% endif %}", "n"),
        ("{% if user.none == blank and missing == blank and no == blank and list != empty %}y{% endif %}", "y"),
        ("{% if yes == true and 1 == 1.0 and '1' == 1 %}y{% else %}n{% endif %}", "n"),
        ("{% if yes == 1 %}y{% else %}n{% endif %}", "n"),
    ],
)
def test_a_template_has_the_meaning_of_liquid(source: str, reported: str) -> None:
    """Ours: outputs, conditions, whitespace control."""
    assert Template.parse(source).render(SHOP) == reported


@pytest.mark.parametrize(
    ("expression", "reported"),
    [
        ("name | upcase", "ANN"),
        ("name | downcase", "ann"),
        ("'hELLO' | capitalize", "Hello"),
        ("name | append: 'a' | prepend: 'b'", "bAnna"),
        ("' a ' | strip", "a"),
        ("' a ' | lstrip", "a "),
        ("' a ' | rstrip", " a"),
        ("text | strip_newlines", ""),
        ("'a-b-a' | replace: 'a', 'x'", "x-b-x"),
        ("'a-b-a' | replace_first: 'a', 'x'", "x-b-a"),
        ("'a-b-a' | replace: '', 'x'", "a-b-a"),
        ("'a-b-a' | remove: 'a'", "-b-"),
        ("'a-b-a' | remove_first: 'a'", "-b-a"),
        ("'hello world' | truncate: 6", "hello…"),
        ("'hello world' | truncate: 8, '...'", "hello..."),
        ("'hello' | truncate", "hello"),
        ("'one two three' | truncatewords: 2", "one two…"),
        ("'one two three' | truncatewords: 2, '!'", "one two!"),
        ("'one two' | truncatewords", "one two"),
        ("'hello' | slice: 1", "e"),
        ("'hello' | slice: 1, 3", "ell"),
        ("'hello' | slice: -3, 2", "ll"),
        ("'hello' | slice: -9, 2", ""),
        ("list | slice: 1, 2 | join", "a c"),
        ("html | escape", "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;"),
        ("'a b&c/é' | url_encode", "a+b%26c%2F%C3%A9"),
        ("'a+b%26' | url_decode", "a b&"),
        ("'héé' | base64_encode | base64_decode", "héé"),
        ("list | json", '["b","a","c"]'),
        ("list | slice: 1 | json", '["a"]'),
        ("vast | json", f"[{10**30}]"),
        ("empty | json", '""'),
        ("nil | json", "null"),
        ("missing | default: 'd'", "d"),
        ("no | default: 'd'", "d"),
        ("'' | default: 'd'", "d"),
        ("yes | default: 'd'", "true"),
        ("list | size", "3"),
        ("name | size", "3"),
        ("5 | size", "0"),
        ("list | first", "b"),
        ("list | last", "c"),
        ("missing | join", ""),
        ("age | plus: 1 | minus: 2 | times: 2", "58"),
        ("7 | divided_by: 2", "3"),
        ("7 | divided_by: 2.0", "3.5"),
        ("7 | modulo: 3", "1"),
        ("1.5 | ceil", "2"),
        ("1.5 | floor", "1"),
        ("1.256 | round: 2", "1.26"),
        ("1.6 | round", "2"),
        ("-5 | abs", "5"),
        ("5 | at_least: 7 | at_most: 6", "6"),
        ("'4' | plus: '1.5'", "5.5"),
        ("'x' | plus: 1", "1"),
        ("yes | plus: 1", "1"),
        ("list | plus: 1", "1"),
        ("long | plus: 1", "1"),
    ],
)
def test_a_filter_has_the_effect_of_its_name(expression: str, reported: str) -> None:
    """Ours: the closed list of filters."""
    variables = SHOP | {"text": "\r\n", "mixed": ["a", None, 2, 1], "long": "9" * 50}

    assert Template.parse("{{ " + expression + " }}").render(variables) == reported


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("{{ x", 1),
        ("\n\n{{ x", 3),
        ("a\n{% if x %}\nb", 2),
        ("\n{% endif %}", 2),
        ("{% if %}{% endif %}", 1),
        ("{% if x %}{% else %}{% elsif y %}{% endif %}", 1),
        ("{% if x %}{% else %}{% else %}{% endif %}", 1),
        ("{% if x y %}{% endif %}", 1),
        ("{% if x %}{% endif x %}", 1),
        ("{% if x contains %}{% endif %}", 1),
        ("{% raw %}", 1),
        ("{% comment %}\n", 1),
        ("\n{{ x | nope }}", 2),
        ("{{ x | upcase: 1 }}", 1),
        ("{{ x | replace: 'a' }}", 1),
        ("{{ x | date: '%Y' }}", 1),
        ("{{ x | default: }}", 1),
        ("{{ x | }}", 1),
        ("{{ x y }}", 1),
        ("{{ 'a' 'b' }}", 1),
        ("{{ (1..3) }}", 1),
        ("{{ x..y }}", 1),
        ("{% if a = b %}{% endif %}", 1),
        ("{% if x %}{% else x %}{% endif %}", 1),
        ("{% else %}", 1),
        ("a\n{% if x %}{% elsif y %}\nb", 2),
        ("{{ x. }}", 1),
        ("{{ x[ }}", 1),
        ("{{ x[1 }}", 1),
        ("{{ }}", 1),
        ("{{ ? }}", 1),
        ("{{ 'open }}", 1),
        ("{% nope %}", 1),
        ("{% %}", 1),
    ],
)
def test_a_broken_template_is_refused_with_its_line(source: str, line: int) -> None:
    """Ours: the author learns where, before anything is stored."""
    with pytest.raises(TemplateInvalid) as caught:
        Template.parse(source)

    assert caught.value.faults[0].line == line
    assert f"line {line}" in caught.value.message
    assert isinstance(caught.value, BadInput)


@pytest.mark.parametrize(
    ("source", "instead"),
    [
        ("{% for x in list %}{{ x }}{% endfor %}", "no loops"),
        ("{% break %}", "no loops"),
        ("{% continue %}", "no loops"),
        ("{%- assign x = 1 -%}", "cannot define variables"),
        ("{% capture x %}a{% endcapture %}", "cannot define variables"),
        ("{% case x %}{% when 1 %}{% endcase %}", "use 'if' and 'elsif'"),
        ("{% unless x %}a{% endunless %}", "use 'if' with 'else'"),
        ("{% echo x %}", "use {{ … }}"),
        ("{% # a remark %}", "'comment'"),
        *(
            (f"{{{{ list | {name} }}}}", "have no filters for lists")
            for name in ("map: 'a'", "sort", "uniq", "split: ','")
        ),
    ],
)
def test_removed_tags_are_refused_with_the_alternative(source: str, instead: str) -> None:
    """Ours: templates have no loops, so their cost is bounded by their length (TEN-5)."""
    with pytest.raises(TemplateInvalid) as caught:
        Template.parse(f"a\n{source}")

    assert instead in caught.value.faults[0].reason
    assert caught.value.faults[0].line == 2


@pytest.mark.parametrize(
    "source",
    [
        "{% if list == list %}{% endif %}",
        "{% if list < 1 %}{% endif %}",
        "{% if yes < 1 %}{% endif %}",
        "{{ 1 | divided_by: 0 }}",
        "{{ 1 | modulo: 0 }}",
        "{{ 'inf' | plus: 1 }}",
        "{{ 99999999999999999999 | plus: 1 }}",
        "{{ 'é?' | base64_decode }}",
        "{{ '//79' | base64_decode }}",
        "{{ broken | url_encode }}",
        "{{ broken | json }}",
        "{{ strange }}",
        "{{ vaster | plus: 1 }}",
        "{{ list | slice: vaster }}",
        "{{ far | round }}",
    ],
)
def test_a_value_that_cannot_be_used_fails_the_call(source: str) -> None:
    """Ours: a clean failure, never an exception of Python's."""
    with pytest.raises(TemplateFailed):
        odd = {"broken": "\ud800", "strange": object(), "vaster": 10**400, "far": 1e300}
        Template.parse(source).render(SHOP | odd)


def test_filled_values_can_be_escaped_without_the_text_around() -> None:
    """Ours: URLs are built so; what filters make is escaped, once."""
    template = Template.parse("a/{{ x }}{% if x %}<{{ x | append: '>' }}{% endif %}")

    assert template.render({"x": "<"}, escape=lambda text: f"[{text}]") == "a/[<]<[<>]"


def test_a_template_knows_whether_it_is_constant() -> None:
    """Ours: a constant part need not be rendered."""
    assert Template.parse("a{% raw %}{{{% endraw %}").is_constant
    assert not Template.parse("a{{ b }}").is_constant
    assert Template.parse("a{{ b }}") == Template.parse("a{{ b }}")


@pytest.mark.parametrize(
    ("tree", "filled"),
    [
        ("{{ age }}", 30),
        ("{{ list }}", ["b", "a", "c"]),
        ("{{ missing }}", None),
        ("{{ users | slice: 1, 1 }}", [{"n": "y", "age": 1}]),
        (" {{ age }}", " 30"),
        ("{{ age }}{{ age }}", "3030"),
        ({"a": ["{{ name }}", 1, None, True, {"b": "x{{ price }}"}]}, {"a": ["Ann", 1, None, True, {"b": "x1.5"}]}),
        ({"{{ name }}": "x"}, {"{{ name }}": "x"}),
        (5, 5),
        ("plain", "plain"),
        ({"a": "{{ evil }}"}, {"a": '", "admin": true, "x": "\n'}),
    ],
)
def test_a_tree_is_filled_leaf_by_leaf(tree: object, filled: object) -> None:
    """Ours: JSON is built from values, so no value can become structure; types stay (TEN-5)."""
    assert Tree.parse(tree).render(SHOP | {"evil": '", "admin": true, "x": "\n'}) == filled


def test_a_constant_tree_is_itself() -> None:
    """Ours: nothing is copied for nothing."""
    source = {"a": [1, "b"]}
    tree = Tree.parse(source)

    assert tree.is_constant
    assert tree.render({}) is source


@pytest.mark.parametrize(
    ("tree", "pointer"),
    [
        ({"a": [1, "{{ x"]}, "/a/1"),
        ({"a/b": "{% x %}"}, "/a~1b"),
        ({"a": object()}, "/a"),
        ({1: "x"}, ""),
    ],
)
def test_a_broken_tree_is_refused_where_it_is_broken(tree: object, pointer: str) -> None:
    """Ours: the fault points into the tree."""
    with pytest.raises(TemplateInvalid) as caught:
        Tree.parse(tree)

    assert caught.value.faults[0].pointer == pointer


def test_a_tree_is_bounded() -> None:
    """Ours: in depth and in size."""
    deep: Any = "x"
    for _ in range(40):
        deep = [deep]

    for tree in (deep, ["x"] * 10_001):
        with pytest.raises(TemplateInvalid):
            Tree.parse(tree)


@pytest.mark.parametrize(
    ("source", "holds"),
    [("age > 20", True), ("user.name.first == 'Bo' and no", False), ("missing", False), ("list contains 'a'", True)],
)
def test_a_condition_is_one_expression(source: str, holds: bool) -> None:
    """Ours: as after `if`."""
    condition = Condition.parse(source)

    assert condition.holds(SHOP) is holds
    assert condition == Condition.parse(source)


@pytest.mark.parametrize("source", ["", "a ==", "a b", "{{ a }}", "a and"])
def test_a_broken_condition_is_refused(source: str) -> None:
    """Ours: the same grammar, no braces."""
    with pytest.raises(TemplateInvalid):
        Condition.parse(source)


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.text(max_size=8)
    | st.sampled_from(["{{ x }}", "a{{ x }}b", "{{ x | size }}", "{% if x %}y{% endif %}"])
)
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
)


ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(10**300, 10**320)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["\ud800", "%ff", "1e400", "٣", "1_0", "-0"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)


def structure(value: object) -> object:
    """The value with its leaves taken out."""
    if isinstance(value, dict):
        return {name: structure(member) for name, member in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list):
        return [structure(element) for element in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return None


@given(TREES, st.none() | st.text(max_size=8) | st.integers(-9, 9))
def test_filling_a_tree_never_changes_its_structure(tree: object, x: object) -> None:
    """Ours: whatever the leaves and the values are."""
    try:
        filled = Tree.parse(tree).render({"x": x})
    except TemplateInvalid:
        return
    assert structure(filled) == structure(tree)


@given(st.text("{}%-|. :'\"[]()x1,=<>\n", max_size=40), st.none() | st.text(max_size=5) | st.integers())
def test_any_text_is_read_or_refused(source: str, x: object) -> None:
    """Ours: no input ends in anything but text or an error of ours."""
    with contextlib.suppress(TemplateInvalid, TemplateFailed):
        Template.parse(source).render({"x": x})


@given(st.sampled_from(sorted(FILTERS)), ODD, ODD, ODD)
def test_any_filter_takes_any_value_or_refuses_it(name: str, x: object, y: object, z: object) -> None:
    """Ours: no value ends in anything but text or an error of ours, numbers of any size included."""
    for arguments in ("", ": y", ": y, z"):
        with contextlib.suppress(TemplateInvalid, TemplateFailed):
            Template.parse(f"{{{{ x | {name}{arguments} }}}}").render({"x": x, "y": y, "z": z})
