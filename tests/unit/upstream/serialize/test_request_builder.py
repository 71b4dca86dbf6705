"""Other parts of a plan in the request: reserved characters, content, headers, the base query."""

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.http.plans import Location, ParameterPlan, RequestPlan, Style
from gateway.errors import ArgumentsInvalid, NotYetSupported
from gateway.upstream.serialize.request_builder import RequestBuilder
from tests.unit.upstream.plans import ORIGIN, header, parameter, plan, sent, target


def reserved(name: str, *, explode: bool = False) -> ParameterPlan:
    """A query parameter with allowReserved."""
    return ParameterPlan(
        argument=name, name=name, location=Location.QUERY, style=Style.FORM, explode=explode, allow_reserved=True
    )


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a/b?c:d", "a/b?c:d"),
        ("!$'()*,;=@", "!$'()*,;="[:-1] + "=@"),
        ("%20%2F", "%20%2F"),
        ("50%", "50%25"),
        ("%zz", "%25zz"),
        ("a&b#c[d]e+f g", "a%26b%23c%5Bd%5De%2Bf%20g"),
    ],
)
def test_allow_reserved_keeps_harmless_characters(value: str, written: str) -> None:
    """OpenAPI: reserved characters and percent-triples pass, those with a meaning in queries are encoded."""
    assert target(plan(reserved("q")), q=value) == f"/x?q={written}"


def test_a_reserved_comma_inside_a_member_is_not_a_separator() -> None:
    """Ours: a list keeps its members even where commas are permitted."""
    assert target(plan(reserved("q")), q=["a,b", "c/d"]) == "/x?q=a%2Cb,c/d"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_an_allow_reserved_value_stays_one_parameter(value: str) -> None:
    """Ours: no text makes a second parameter."""
    query = target(plan(reserved("q"), parameter(Location.QUERY, "z")), q=value, z=1).partition("?")[2]

    assert [name for name, _ in parse_qsl(query, keep_blank_values=True)] == ["q", "z"]


def test_the_query_of_the_server_comes_first_and_parameters_follow() -> None:
    """Ours: a base URL such as …?api-version=1 keeps its query."""
    made = plan(parameter(Location.QUERY, "q"), query="api-version=1")

    assert target(made, q=1) == "/x?api-version=1&q=1"
    assert target(made) == "/x?api-version=1"


def test_names_are_encoded_like_values() -> None:
    """Ours: a parameter name of a document cannot become anything but a name."""
    assert target(plan(parameter(Location.QUERY, "ids[]&x=")), **{"ids[]&x=": 1}) == "/x?ids%5B%5D%26x%3D=1"


def test_content_parameters_are_json_in_their_place() -> None:
    """OpenAPI: a parameter with `content` is serialised in its media type first."""
    made = plan(
        parameter(Location.QUERY, "q", media_type="application/json"),
        parameter(Location.HEADER, "X-H", media_type="application/json"),
        parameter(Location.COOKIE, "c", media_type="application/json"),
        parameter(Location.PATH, "p", media_type="application/json"),
        path="/x/{3}",
    )

    request = sent(made, **{"q": {"a": [1, "é"]}, "X-H": {"b": "é"}, "c": {"d": 1}, "p": {"e": 1}})

    assert request.url == f"{ORIGIN}/x/%7B%22e%22%3A1%7D?q=%7B%22a%22%3A%5B1%2C%22%C3%A9%22%5D%7D"
    assert header(request, "X-H") == '{"b":"\\u00e9"}'
    assert header(request, "Cookie") == "c=%7B%22d%22%3A1%7D"


@pytest.mark.parametrize(
    ("media_type", "value", "written"),
    [
        ("application/x-www-form-urlencoded", {"a": "1 &", "b": 2}, "a=1+%26&b=2"),
        ("application/json", {"a": 1}, "%7B%22a%22%3A1%7D"),
        ("text/plain", "a=b", "a%3Db"),
    ],
)
def test_a_querystring_parameter_is_the_whole_query(media_type: str, value: object, written: str) -> None:
    """OpenAPI: `in: querystring` of 3.2, as a form or in another media type."""
    assert target(plan(parameter(Location.QUERYSTRING, "qs", media_type=media_type)), qs=value) == f"/x?{written}"


def test_a_querystring_form_that_is_no_object_is_refused() -> None:
    """Ours: nothing is sent that could not be read back."""
    made = plan(parameter(Location.QUERYSTRING, "qs", media_type="application/x-www-form-urlencoded"))

    with pytest.raises(ArgumentsInvalid, match="must be an object"):
        target(made, qs="a=b")


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\n", "\x00", "é", "中", " a", "a\t", "\x7f", ["a,b"], [" "]])
def test_header_values_that_would_arrive_differently_are_refused(value: object) -> None:
    """RFC 9110: field values are visible ASCII here; the refusal does not repeat the value."""
    with pytest.raises(ArgumentsInvalid) as caught:
        sent(plan(parameter(Location.HEADER, "X-A")), **{"X-A": value})

    assert caught.value.faults[0].pointer == "/X-A"
    assert caught.value.message.startswith("The argument /X-A cannot be sent: ")
    assert "Evil" not in caught.value.message


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "host",
        "Authorization",
        "Cookie",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "TE",
        "Upgrade",
        "Proxy-Authorization",
        "Proxy-Connection",
        "X-Forwarded-For",
        "x-forwarded-host",
        "Forwarded",
        "Accept",
        "Accept-Encoding",
        "Content-Type",
        "Content-Encoding",
        "Expect",
        "Trailer",
        "Keep-Alive",
    ],
)
def test_headers_of_the_gateway_are_not_filled_from_arguments(name: str) -> None:
    """Ours: framing, identity and forwarding headers never come from outside; the operation works without."""
    made = plan(parameter(Location.HEADER, name))

    assert sent(made) == sent(plan())
    with pytest.raises(ArgumentsInvalid, match="set by the gateway only"):
        sent(made, **{name: "x"})


@pytest.mark.parametrize("location", [Location.HEADER, Location.COOKIE])
@pytest.mark.parametrize("name", ["", "a b", "a:b", "a\r\nb", "é", "a;b="])
def test_names_that_no_header_or_cookie_can_have_are_refused_at_once(location: Location, name: str) -> None:
    """RFC 9110: a field name is a token."""
    if name == "a;b=" or name:
        with pytest.raises(NotYetSupported):
            RequestBuilder(plan(parameter(location, name)))


@pytest.mark.parametrize("location", [Location.QUERY, Location.HEADER, Location.COOKIE])
def test_null_for_a_required_parameter_is_refused_and_for_an_optional_one_absent(location: Location) -> None:
    """Ours: null counts as absent; what is required cannot be absent."""
    assert sent(plan(parameter(location, "n")), n=None) == sent(plan())
    with pytest.raises(ArgumentsInvalid, match="required"):
        sent(plan(parameter(location, "n", required=True)), n=None)


def test_same_names_in_different_places_stay_apart() -> None:
    """Ours: arguments are distinguished by the plan's argument names."""
    made = plan(
        ParameterPlan(argument="id__path", name="id", location=Location.PATH, style=Style.SIMPLE, explode=False),
        ParameterPlan(argument="id__query", name="id", location=Location.QUERY, style=Style.FORM, explode=True),
        ParameterPlan(argument="id__header", name="id", location=Location.HEADER, style=Style.SIMPLE, explode=False),
        path="/u/{0}",
    )

    request = sent(made, id__path="p", id__query=2, id__header="h")

    assert request.url == f"{ORIGIN}/u/p?id=2"
    assert header(request, "id") == "h"


@pytest.mark.parametrize("origin", ["ftp://x", "file:///etc", "//x", "https://u:p@x", "https://x/y", "https://x y", ""])
def test_an_origin_that_is_not_http_is_refused_at_once(origin: str) -> None:
    """Ours: the plan's origin is scheme, host and port, and nothing else."""
    with pytest.raises(NotYetSupported):
        RequestBuilder(RequestPlan(method="GET", origin=origin, path="/x"))


@pytest.mark.parametrize("accept", ["a\r\nb", "é"])
def test_an_accept_value_that_is_no_header_is_refused_at_once(accept: str) -> None:
    """Ours: media types come from a document and are judged like everything else."""
    with pytest.raises(NotYetSupported):
        RequestBuilder(RequestPlan(method="GET", origin=ORIGIN, path="/x", accept=accept))


def test_method_and_idempotence_are_the_plans() -> None:
    """Ours: the request declares if it may be sent again."""
    request = RequestBuilder(RequestPlan(method="Query", origin=ORIGIN, path="/x", idempotent=True)).build({})

    assert (request.method, request.idempotent) == ("Query", True)
