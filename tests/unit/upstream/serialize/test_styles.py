"""The style table of OpenAPI, row by row, and what the table leaves open."""

from http.cookies import SimpleCookie
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.http.plans import Location, Style
from gateway.errors import ArgumentsInvalid
from tests.unit.upstream.plans import header, parameter, plan, sent, target

ARRAY = ["blue", "black", "brown"]
OBJECT = {"R": 100, "G": 200, "B": 150}
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON_KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@pytest.mark.parametrize(
    ("style", "explode", "value", "written"),
    [
        (Style.SIMPLE, False, "blue", "blue"),
        (Style.SIMPLE, False, ARRAY, "blue,black,brown"),
        (Style.SIMPLE, False, OBJECT, "R,100,G,200,B,150"),
        (Style.SIMPLE, True, "blue", "blue"),
        (Style.SIMPLE, True, ARRAY, "blue,black,brown"),
        (Style.SIMPLE, True, OBJECT, "R=100,G=200,B=150"),
        (Style.LABEL, False, "blue", ".blue"),
        (Style.LABEL, False, ARRAY, ".blue,black,brown"),
        (Style.LABEL, False, OBJECT, ".R,100,G,200,B,150"),
        (Style.LABEL, True, "blue", ".blue"),
        (Style.LABEL, True, ARRAY, ".blue.black.brown"),
        (Style.LABEL, True, OBJECT, ".R=100.G=200.B=150"),
        (Style.MATRIX, False, "blue", ";color=blue"),
        (Style.MATRIX, False, ARRAY, ";color=blue,black,brown"),
        (Style.MATRIX, False, OBJECT, ";color=R,100,G,200,B,150"),
        (Style.MATRIX, True, "blue", ";color=blue"),
        (Style.MATRIX, True, ARRAY, ";color=blue;color=black;color=brown"),
        (Style.MATRIX, True, OBJECT, ";R=100;G=200;B=150"),
    ],
)
def test_path_values_follow_the_style_table(style: Style, explode: bool, value: object, written: str) -> None:
    """OpenAPI: style values of path parameters (3.0.4 section 4.8.12.2)."""
    made = plan(parameter(Location.PATH, style=style, explode=explode), path="/u/{0}/x")

    assert target(made, color=value) == f"/u/{written}/x"


@pytest.mark.parametrize(
    ("style", "explode", "value", "written"),
    [
        (Style.FORM, False, "", "color="),
        (Style.FORM, False, "blue", "color=blue"),
        (Style.FORM, False, ARRAY, "color=blue,black,brown"),
        (Style.FORM, False, OBJECT, "color=R,100,G,200,B,150"),
        (Style.FORM, True, "", "color="),
        (Style.FORM, True, "blue", "color=blue"),
        (Style.FORM, True, ARRAY, "color=blue&color=black&color=brown"),
        (Style.FORM, True, OBJECT, "R=100&G=200&B=150"),
        (Style.SPACE, False, ARRAY, "color=blue%20black%20brown"),
        (Style.SPACE, False, OBJECT, "color=R%20100%20G%20200%20B%20150"),
        (Style.SPACE, True, ARRAY, "color=blue&color=black&color=brown"),
        (Style.PIPE, False, ARRAY, "color=blue%7Cblack%7Cbrown"),
        (Style.PIPE, False, OBJECT, "color=R%7C100%7CG%7C200%7CB%7C150"),
        (Style.TAB, False, ARRAY, "color=blue%09black%09brown"),
        (Style.DEEP_OBJECT, True, OBJECT, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
        (Style.DEEP_OBJECT, True, {"a": {"b": 1}}, "color%5Ba%5D%5Bb%5D=1"),
        (Style.DEEP_OBJECT, True, {"a": ["x", "y"]}, "color%5Ba%5D%5B0%5D=x&color%5Ba%5D%5B1%5D=y"),
        (Style.DEEP_OBJECT, True, "blue", "color=blue"),
    ],
)
def test_query_values_follow_the_style_table(style: Style, explode: bool, value: object, written: str) -> None:
    """OpenAPI: style values of query parameters; nested deepObject as the libraries do that named it."""
    made = plan(parameter(Location.QUERY, style=style, explode=explode))

    assert target(made, color=value) == f"/x?{written}"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (7.0, "7"),
        (-0.5, "-0.5"),
        (0.1, "0.1"),
        (1e21, "1e21"),
        (1e-7, "1e-7"),
        (12345678901234567890123, "12345678901234567890123"),
        ("a b&c=d#e+f%é", "a%20b%26c%3Dd%23e%2Bf%25%C3%A9"),
        ("-._~", "-._~"),
    ],
)
def test_scalars_are_written_as_json_writes_them_and_percent_encoded(value: object, written: str) -> None:
    """Ours: booleans in lower case, integral numbers without a fraction, every digit of a large integer kept."""
    assert target(plan(parameter(Location.QUERY)), color=value) == f"/x?color={written}"


@pytest.mark.parametrize("style", [Style.FORM, Style.SPACE, Style.PIPE, Style.DEEP_OBJECT])
@pytest.mark.parametrize("explode", [True, False])
@pytest.mark.parametrize("value", [[], {}, [None], {"a": None}, None])
def test_empty_and_null_values_are_not_sent_in_a_query(style: Style, explode: bool, value: object) -> None:
    """RFC 6570: undefined members and lists without members produce nothing."""
    assert target(plan(parameter(Location.QUERY, style=style, explode=explode)), color=value) == "/x"


def test_null_members_are_left_out_and_the_others_stay() -> None:
    """RFC 6570: undefined members of lists and objects are ignored."""
    made = plan(parameter(Location.QUERY, "a"), parameter(Location.QUERY, "b", style=Style.DEEP_OBJECT, explode=True))

    assert target(made, a=[1, None, 2], b={"x": None, "y": 3}) == "/x?a=1,2&b%5By%5D=3"


def test_a_list_that_holds_only_an_empty_text_is_sent() -> None:
    """Ours: an empty text is a value, unlike an empty list."""
    made = plan(parameter(Location.QUERY, "a"), parameter(Location.QUERY, "b", explode=True))

    assert target(made, a=[""], b=[""]) == "/x?a=&b="


@pytest.mark.parametrize(
    ("style", "value"), [(Style.SPACE, ["a b", "c"]), (Style.PIPE, ["a|b"]), (Style.TAB, {"k": "a\tb"})]
)
def test_a_member_that_holds_the_delimiter_is_refused(style: Style, value: object) -> None:
    """Ours: a list that its reader would split differently is never sent."""
    with pytest.raises(ArgumentsInvalid, match="separates members"):
        target(plan(parameter(Location.QUERY, style=style)), color=value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("nan")], {"a": {"b": float("-inf")}}, "\ud800"])
def test_values_without_a_written_form_are_refused(value: object) -> None:
    """Ours: NaN, infinities and lone surrogates are an error of the arguments, not of the gateway."""
    with pytest.raises(ArgumentsInvalid) as caught:
        target(plan(parameter(Location.QUERY, explode=True)), color=value)

    assert caught.value.faults[0].pointer == "/color"


@pytest.mark.parametrize(
    ("explode", "value", "written"),
    [
        (False, "blue", "blue"),
        (False, ARRAY, "blue,black,brown"),
        (False, OBJECT, "R,100,G,200,B,150"),
        (True, OBJECT, "R=100,G=200,B=150"),
        (False, True, "true"),
        (False, "a b%;=", "a b%;="),
        (False, "", ""),
    ],
)
def test_header_values_follow_the_style_table(explode: bool, value: object, written: str) -> None:
    """OpenAPI: style simple in headers, without percent-encoding."""
    request = sent(plan(parameter(Location.HEADER, "X-Color", explode=explode)), **{"X-Color": value})

    assert header(request, "X-Color") == written


@pytest.mark.parametrize(
    ("explode", "value", "written"),
    [
        (False, "blue", "color=blue"),
        (False, [1, 2], "color=1,2"),
        (True, [1, 2], "color=1; color=2"),
        (False, OBJECT, "color=R,100,G,200,B,150"),
        (True, OBJECT, "R=100; G=200; B=150"),
        (False, 'a; b="c",\\', "color=a%3B%20b%3D%22c%22%2C%5C"),
    ],
)
def test_cookie_values_follow_the_style_table(explode: bool, value: object, written: str) -> None:
    """OpenAPI: style form in cookies; exploded members are cookies of their own, and no value can add one."""
    request = sent(plan(parameter(Location.COOKIE, explode=explode)), color=value)

    assert header(request, "Cookie") == written


@given(st.dictionaries(st.sampled_from("abc"), TEXT), st.lists(TEXT))
def test_a_query_reads_back_as_it_was_given(scalars: dict[str, str], many: list[str]) -> None:
    """Ours: whatever text is given, exactly these pairs arrive, in order."""
    made = plan(*(parameter(Location.QUERY, name) for name in "abc"), parameter(Location.QUERY, "many", explode=True))

    query = target(made, **scalars, many=many).partition("?")[2]

    read = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    assert read == [(name, scalars[name]) for name in "abc" if name in scalars] + [("many", text) for text in many]


@given(st.dictionaries(JSON_KEYS, TEXT, min_size=1))
def test_a_deep_object_reads_back_as_it_was_given(value: dict[str, str]) -> None:
    """Ours: names inside brackets cannot break out of them."""
    query = target(plan(parameter(Location.QUERY, style=Style.DEEP_OBJECT, explode=True)), color=value)

    read = parse_qsl(query.partition("?")[2], keep_blank_values=True, strict_parsing=True)
    assert read == [(f"color[{name}]", text) for name, text in value.items()]


@given(st.lists(TEXT, min_size=1))
def test_a_comma_separated_list_reads_back_as_it_was_given(value: list[str]) -> None:
    """Ours: commas inside members are encoded, commas between them are not."""
    written = target(plan(parameter(Location.QUERY)), color=value).partition("=")[2]

    assert [unquote(part) for part in written.split(",")] == value


@given(TEXT.filter(bool))
def test_a_cookie_reads_back_as_it_was_given(value: str) -> None:
    """Ours: one cookie goes out and one comes in."""
    written = header(sent(plan(parameter(Location.COOKIE, "c")), c=value), "Cookie")

    assert written is not None
    assert {name: unquote(held.value) for name, held in SimpleCookie(written).items()} == {"c": value}
