"""A URI is matched in its only possible way, in linear time, or the template is refused."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.definitions.uri.templates import UriTemplate
from gateway.errors import ResourceValidationError
from tests.support.uri_expansion import expand


@pytest.mark.parametrize(
    ("template", "uri", "found"),
    [
        ("test://template/{id}/data", "test://template/123/data", {"id": "123"}),
        ("test://template/{id}/data", "test://template/a%2Fb/data", {"id": "a/b"}),
        ("test://template/{id}/data", "test://template//data", None),
        ("test://template/{id}/data", "test://template/1/2/data", None),
        ("test://template/{id}/data", "test://template/1/dat", None),
        ("test://template/{id}/data", "test://template/1/data/", None),
        ("test://template/{id}/data", "TEST://template/1/data", None),
        ("n://{id}", "n://a b", None),
        ("n://{id}", "n://é", None),
        ("n://{id}", "n://a%zz", None),
        ("n://{id}", "n://a%00b", None),
        ("n://{id}", "n://a%0d%0ab", None),
        ("n://{id}", "n://%C2%85", None),
        ("n://{id}", "n://%ff", None),
        ("n://{id}", "n://" + "x" * 9000, None),
        ("n://{id}", "n://%E2%82%AC", {"id": "€"}),
        ("n://{id}.json", "n://a.b.json", {"id": "a.b"}),
        ("n://{id}.json", "n://.json", None),
        ("n://{a}/{b}", "n://x/y", {"a": "x", "b": "y"}),
        ("n://{a}/{b}", "n://x/", None),
        ("n://{a}-/{b}", "n://x-y-/z", {"a": "x-y", "b": "z"}),
        ("n://{a}-/{b}", "n://x/z", None),
        ("n://x{.a}", "n://x.y.z", {"a": "y.z"}),
        ("n:{/a,b}", "n:/x/y", {"a": "x", "b": "y"}),
        ("n:{/a}{/b}", "n:/x/y", {"a": "x", "b": "y"}),
        ("n:{/a,b}", "n:/x", None),
        ("f://{+path}", "f://a/b/c.txt", {"path": "a/b/c.txt"}),
        ("f://{+path}", "f://a?b#c", {"path": "a?b#c"}),
        ("f://{host}/{+path}/meta", "f://h/a/b/meta", {"host": "h", "path": "a/b"}),
        ("f://{host}/{+path}/meta", "f://h/meta", None),
        ("d://x{#part}", "d://x#a/b", {"part": "a/b"}),
        ("d://x{#part}", "d://x", {}),
        ("s://q{?a,b}", "s://q?b=2&a=1", {"a": "1", "b": "2"}),
        ("s://q{?a,b}", "s://q?b=2", {"b": "2"}),
        ("s://q{?a,b}", "s://q", {}),
        ("s://q{?a,b}", "s://q?a=", {"a": ""}),
        ("s://q{?a,b}", "s://q?", None),
        ("s://q{?a,b}", "s://q?c=1", None),
        ("s://q{?a,b}", "s://q?a=1&a=2", None),
        ("s://q{?a,b}", "s://q?a", None),
        ("s://q{?a,b}", "s://q?a=1&", None),
        ("s://q{?a,b}", "s://q?a=1?b=2", None),
        ("s://q{?a,b}", "s://q#x", None),
        ("s://q?k=1{&a}", "s://q?k=1&a=2", {"a": "2"}),
        ("s://q?k=1{&a}", "s://q?k=1", {}),
        ("s://q?k=1{&a}", "s://q?k=1&", None),
        ("s://q?k=1{&a}", "s://q?a=2&k=1", None),
        ("s://q?k={k}&l=1{&a,b}", "s://q?k=7&l=1&b=2", {"k": "7", "b": "2"}),
        ("s://q{?a}{&b}{#c}", "s://q?b=2&a=1#x", {"a": "1", "b": "2", "c": "x"}),
        ("s://{h}{?a}", "s://x?a=%26", {"h": "x", "a": "&"}),
    ],
)
def test_a_uri_is_matched_in_one_way(template: str, uri: str, found: dict[str, str] | None) -> None:
    """Ours: values are decoded, never hold control characters, and stay in their place (RES-2)."""
    assert UriTemplate.parse(template).match(uri) == found


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("n://{a}{b}", "text must separate"),
        ("n://{a}-{b}", "does not separate"),
        ("n://{a}{.b}", "does not separate"),
        ("n://{a,b}", "one variable only"),
        ("n://{+a}{b}", "matches everything"),
        ("n://{+a}/{b}", "matches everything"),
        ("n://{+a}{?b}", "matches everything"),
        ("n://{+a}{#b}", "matches everything"),
        ("n://{a*}", "one value, a list or a map"),
        ("n://{a:3}", "only the beginning of a value"),
        ("n://{;a}", "not supported"),
        ("n://{a}/{a}", "once only"),
        ("n://{?a}{?b}", "one '{?…}' only"),
        ("n://{?a}/b", "nothing may follow"),
        ("n://{?a}{b}", "cannot follow the query"),
        ("n://{#a}b", "nothing may follow"),
        ("n://{#a}{b}", "cannot follow the fragment"),
        ("n://{#a,b}", "have one variable"),
        ("n://#{#a}", "the only '#'"),
        ("n://{&a}", "needs a '?'"),
        ("n://?b{?a}", "needs no '?'"),
        ("n://plain", "no variable"),
    ],
)
def test_an_ambiguous_form_is_refused_with_the_reason(template: str, reason: str) -> None:
    """Ours: a template with several possible matches is refused at registration (RES-2)."""
    with pytest.raises(ResourceValidationError, match=re.escape(reason)):
        UriTemplate.parse(template)


@pytest.mark.parametrize(
    ("template", "use", "taken"),
    [
        ("n://{a}{b}", "{a}/{b}", "n://{a}/{b}"),
        ("n://{a}{+b}", "{a}/{+b}", "n://{a}/{+b}"),
        ("n://{a}-{b}", "{a}/{b}", "n://{a}/{b}"),
        ("n://{a}{.b}", "{a}/{b}", "n://{a}/{b}"),
        ("n://{a,b}", "{/a,b}", "n://x{/a,b}"),
        ("n://{+a}{b}", "{b}/{+a}", "n://{b}/{+a}"),
        ("n://{+a}/{b}", "{b}/{+a}", "n://{b}/{+a}"),
        ("n://{+a}{/b}", "{b}/{+a}", "n://{b}/{+a}"),
        ("n://{+a}/x{?b}", "{a}/x{?b}", "n://{a}/x{?b}"),
        ("n://{+a}{#b}", "{a}{#b}", "n://{a}{#b}"),
        ("n://{a*}", "{a} for one segment, or {+a} at the end for several", "n://{a}"),
        ("n://{a*}", "{a} for one segment, or {+a} at the end for several", "n://{+a}"),
        ("n://x{/a*}", "{/a} for one segment, or /{+a} at the end for several", "n://x{/a}"),
        ("n://x{/a*}", "{/a} for one segment, or /{+a} at the end for several", "n://x/{+a}"),
        ("n://x{?a*}", "{?a}", "n://x{?a}"),
        ("n://{+a*}", "{+a}", "n://{+a}"),
        ("n://x{/a,b*}", "{/a,b}", "n://x{/a,b}"),
        ("n://{a:3}", "{a}", "n://{a}"),
        ("n://x{?a:3,b}", "{?a,b}", "n://x{?a,b}"),
        ("n://x{;a,b}", "{?a,b}", "n://x{?a,b}"),
        ("n://{a}/{a}", "{a_2}", "n://{a}/{a_2}"),
        ("n://x{?a}{?b}", "{&b}", "n://x{?a}{&b}"),
        ("n://x{&a}", "{?a}", "n://x{?a}"),
        ("n://x?b{?a}", "{&a}", "n://x?b{&a}"),
        ("n://x{#a,b}", "{#a}", "n://x{#a}"),
    ],
)
def test_a_refusal_names_the_form_that_works(template: str, use: str, taken: str) -> None:
    """Ours: the refusal names a form that is accepted (RES-2)."""
    with pytest.raises(ResourceValidationError) as refused:
        UriTemplate.parse(template)

    assert refused.value.message.endswith(f"; use {use}")
    assert UriTemplate.parse(taken).variables


def test_a_template_names_its_variables() -> None:
    """Ours: the completable variables are known."""
    template = UriTemplate.parse("n://{b}/{a}{?c,d}")

    assert template.variables == ("b", "a", "c", "d")
    assert template == UriTemplate.parse("n://{b}/{a}{?c,d}")
    assert expand(template.text, {"a": "1", "b": "x/y", "d": True}) == "n://x%2Fy/1?d=true"


def test_matching_is_linear_in_the_uri() -> None:
    """Ours: the shape that made backtracking matchers hang (CVE-2026-0621) is read once."""
    template = UriTemplate.parse("n:" + "".join(f"{{/v{number}}}" for number in range(100)) + "/end")

    assert template.match("n:" + "/a" * 3000) is None
    assert template.match("n:" + "/," * 3000) is None


TEXTS = st.text(
    st.characters(exclude_categories=("Cc", "Cs"), exclude_characters=[chr(code) for code in range(0x80, 0xA0)]),
    min_size=1,
    max_size=12,
)
SHAPES = (
    "n://{a}",
    "n://{a}/{b}",
    "n://x/{a}.json",
    "n:{/a,b}/end",
    "n://{a}/-{b}{?c}",
    "n://{a}{?b,c}{#d}",
    "n://h?x=1{&a,b,c}",
    "n://{a}@{b}:{c}",
)


@given(st.sampled_from(SHAPES), st.fixed_dictionaries(dict.fromkeys("abcd", TEXTS)))
def test_an_expanded_uri_is_matched_to_the_same_values(shape: str, values: dict[str, str]) -> None:
    """Ours: matching undoes expansion for every form that is taken (RES-2)."""
    template = UriTemplate.parse(shape)

    assert template.match(expand(shape, values)) == {name: values[name] for name in template.variables}


@given(st.sampled_from([*SHAPES, "f://{+a}/z"]), st.text(string.printable, max_size=60))
def test_every_match_expands_to_an_equal_uri(shape: str, tail: str) -> None:
    """Ours: no URI is read as values that would not make it again."""
    template = UriTemplate.parse(shape)
    found = template.match(template.lead + tail)

    if found is not None:
        assert template.match(expand(shape, found)) == found
