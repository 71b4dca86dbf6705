"""Path values that are sent, and that none of them reaches another path."""

from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.http.plans import Location, ParameterPlan, RequestPlan, Style
from gateway.errors import ArgumentsInvalid, NotYetSupported
from gateway.upstream.serialize.path_safety import has_dot_segment
from gateway.upstream.serialize.request_builder import RequestBuilder
from tests.support.examples import at_least
from tests.unit.upstream.plans import ORIGIN, parameter, plan, target

HOSTILE = [
    ".",
    "..",
    "../admin",
    "../../admin",
    "a/../b",
    "a/..",
    "./a",
    "..;",
    "..;/admin",
    "a/..;x=1/b",
    ".. ",
    " ..",
    "..?x",
    "..#x",
    "%2e",
    "%2e%2e",
    "%2E%2e",
    ".%2e",
    "%252e%252e",
    "%2e%2e%2fadmin",
    "..%2fadmin",
    "..%252fadmin",
    "a%2fb",
    "a%2Fb",
    "a%252fb",
    "/",
    "/etc/passwd",
    "//host",
    "//evil.example/x",
    "%2f%2fhost",
    "\\",
    "..\\admin",
    "a\\b",
    "%5c",
    "a%5cb",
    "%255c",
    "a\x00",
    "a%00",
    "a%2500",
    "a\r\nX: y",
    "a%0d%0ab",
    "\t",
    "\x7f",
    "\ud800",
]


@pytest.mark.parametrize("style", [Style.SIMPLE, Style.LABEL, Style.MATRIX])
def test_a_value_that_could_mean_another_path_is_refused(style: Style) -> None:
    """Ours: no spelling of a path climbs, ends a segment for a server that decodes twice, or is empty."""
    made = plan(parameter(Location.PATH, "id", style=style), path="/u/{0}/x")

    arguments = [argument for value in HOSTILE for argument in (value, [value], {"k": value})]
    assert [argument for argument in arguments if not _is_refused(made, argument)] == []


def _is_refused(made: RequestPlan, argument: object) -> bool:
    try:
        target(made, id=argument)
    except ArgumentsInvalid as error:
        return error.faults[0].pointer == "/id"
    return False


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("v1.2.txt", "v1.2.txt"),
        (".bashrc", ".bashrc"),
        ("...", "..."),
        ("a..b", "a..b"),
        ("a..", "a.."),
        ("heads/main", "heads%2Fmain"),
        ("https://example.com/", "https%3A%2F%2Fexample.com%2F"),
        ("50%", "50%25"),
        ("a%20b", "a%2520b"),
        ("a b;c=d?e#f&g", "a%20b%3Bc%3Dd%3Fe%23f%26g"),
        ("é", "%C3%A9"),
        (7, "7"),
        (7.0, "7"),
        (True, "true"),
    ],
)
def test_other_values_are_encoded_whole(value: object, written: str) -> None:
    """RFC 3986: everything but unreserved characters is encoded, so the value stays one segment."""
    assert target(plan(parameter(Location.PATH, "id"), path="/u/{0}/x"), id=value) == f"/u/{written}/x"


@settings(max_examples=at_least(500))
@given(st.text(st.sampled_from("ab./\\%2eEfF5cC;?#: \x00\n~é"), max_size=8))
def test_every_value_keeps_the_path_segments_and_the_origin(value: str) -> None:
    """Ours: a value is refused or arrives as exactly one segment, and reads back as it was given."""
    made = plan(parameter(Location.PATH, "id"), path="/u/{0}/x")

    try:
        written = target(made, id=value)
    except ArgumentsInvalid:
        return

    before, after = "/u/", "/x"
    assert written.startswith(before)
    assert written.endswith(after)
    inner = written[len(before) : -len(after)]
    assert "/" not in inner
    assert "?" not in inner
    assert "#" not in inner
    assert unquote(inner) == value
    assert not {".", ".."} & {unquote(unquote(inner)), unquote(inner), inner}


@pytest.mark.parametrize("value", [None, [], {}, [None], {"a": None}])
def test_a_missing_path_value_is_an_error_that_points_at_it(value: object) -> None:
    """Ours: an unfilled place in a path is refused before anything is sent."""
    made = plan(
        ParameterPlan(
            argument="a/b~", name="id", location=Location.PATH, style=Style.SIMPLE, explode=False, required=True
        ),
        path="/u/{0}",
    )

    with pytest.raises(ArgumentsInvalid) as caught:
        RequestBuilder(made).build({"a/b~": value})

    assert caught.value.faults[0].pointer == "/a~1b~0"


def test_parts_that_together_make_a_dot_segment_are_refused() -> None:
    """Ours: it is the whole segment that counts, not each value."""
    made = plan(parameter(Location.PATH, "a", style=Style.LABEL, explode=True), path="/u/{0}")

    with pytest.raises(ArgumentsInvalid):
        target(made, a=["", ""])


@pytest.mark.parametrize("path", ["/.", "/..", "/a/./b", "/a/../b", "/%2e%2E/b", "/.%2e", "/..;x/b"])
def test_dot_segments_of_a_whole_path_are_found(path: str) -> None:
    """Ours: the finished path is looked at once more, whatever made it."""
    assert has_dot_segment(path)


@pytest.mark.parametrize("path", ["/", "/a.b/.c/..d/e..", "/...", "/%2ea", "/%252e", "/.%2F"])
def test_other_dots_in_a_path_are_fine(path: str) -> None:
    """Ours: only a segment that is nothing but one or two dots is special."""
    assert not has_dot_segment(path)


def test_literal_braces_and_several_values_in_one_segment() -> None:
    """Ours: a plan's path is filled at its placeholders and nowhere else."""
    made = plan(
        parameter(Location.PATH, "a"),
        parameter(Location.PATH, "b"),
        path="/x{{y}}/{0}.{1}/{0}",
    )

    assert target(made, a="{1}", b="z") == "/x%7By%7D/%7B1%7D.z/%7B1%7D"


@pytest.mark.parametrize("path", ["/a/../b", "/a/%2e%2e/b", "/{1}", "/{0}", "no-slash", "/a b", "/a?b=c#d"])
def test_a_plan_with_an_unsendable_path_is_refused_at_once(path: str) -> None:
    """Ours: a bad plan is found when it is compiled, not when it is called."""
    with pytest.raises(NotYetSupported):
        RequestBuilder(plan(parameter(Location.QUERY, "q"), path=path))


def test_an_empty_path_is_the_root() -> None:
    """RFC 9110: the empty path of an origin is requested as '/'."""
    assert target(plan(path="")) == "/"


def test_reserved_characters_stay_in_a_path_that_allows_them_but_not_separators() -> None:
    """OpenAPI: allowReserved keeps what a path value may hold."""
    allowed = ParameterPlan(
        argument="id", name="id", location=Location.PATH, style=Style.SIMPLE, explode=False, allow_reserved=True
    )

    assert RequestBuilder(plan(allowed, path="/{0}")).build({"id": "a/b?c#d:e@f%20g%"}).url == (
        f"{ORIGIN}/a%2Fb%3Fc%23d:e@f%20g%25"
    )


@pytest.mark.parametrize(
    ("style", "value"),
    [(Style.SIMPLE, ""), (Style.SIMPLE, [""]), (Style.SIMPLE, []), (Style.LABEL, ""), (Style.LABEL, ["", ""])],
)
def test_a_value_without_any_text_would_name_another_path(style: Style, value: object) -> None:
    """Ours: an empty segment, or one of dots, is what servers resolve away."""
    made = plan(parameter(Location.PATH, "id", style=style, explode=True), path="/u/{0}/x")

    with pytest.raises(ArgumentsInvalid):
        target(made, id=value)


def test_an_empty_member_beside_others_and_an_empty_matrix_parameter_are_written() -> None:
    """RFC 6570: empty members keep their place; a matrix parameter without a value keeps its name."""
    simple = plan(parameter(Location.PATH, "id"), path="/u/{0}/x")
    matrix = plan(parameter(Location.PATH, "id", style=Style.MATRIX), path="/u/{0}/x")

    assert target(simple, id=["a", "", "b"]) == "/u/a,,b/x"
    assert target(simple, id={"k": ""}) == "/u/k,/x"
    assert target(matrix, id="") == "/u/;id/x"
