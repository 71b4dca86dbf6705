"""Use of stored credentials in a request."""

import base64

import pytest

from gateway.domain.http.plans import SchemeKind, SchemePlan
from gateway.domain.http.requests import Credential, UpstreamRequest
from gateway.errors import CredentialMissing
from gateway.upstream.auth.credentials import apply, digest_of_headers
from tests.unit.upstream.plans import header

PLAIN = UpstreamRequest(method="GET", url="https://api.example.com/x?q=1", headers=(("Accept", "*/*"),))
KEY = SchemePlan(name="key", kind=SchemeKind.API_KEY_HEADER, field="X-Key")
QUERY = SchemePlan(name="query", kind=SchemeKind.API_KEY_QUERY, field="api key")
COOKIE = SchemePlan(name="cookie", kind=SchemeKind.API_KEY_COOKIE, field="SID")
BASIC = SchemePlan(name="basic", kind=SchemeKind.BASIC)
BEARER = SchemePlan(name="bearer", kind=SchemeKind.BEARER)


def stored(**values: str) -> dict[str, Credential]:
    """Credentials by scheme name."""
    return {name: Credential(value=value) for name, value in values.items()}


def test_each_kind_goes_to_its_place() -> None:
    """OpenAPI: apiKey in header, query and cookie, http basic and bearer."""
    assert header(apply(PLAIN, ((KEY,),), stored(key="s3")), "X-Key") == "s3"
    assert apply(PLAIN, ((QUERY,),), stored(query="a&b=c")).url.endswith("?q=1&api%20key=a%26b%3Dc")
    assert header(apply(PLAIN, ((COOKIE,),), stored(cookie="s3")), "Cookie") == "SID=s3"
    assert header(apply(PLAIN, ((BEARER,),), stored(bearer="tok")), "Authorization") == "Bearer tok"
    basic = apply(PLAIN, ((BASIC,),), {"basic": Credential(username="Aladdin", value="öpen sesame")})
    assert header(basic, "Authorization") == "Basic " + base64.b64encode("Aladdin:öpen sesame".encode()).decode()


def test_the_first_alternative_that_is_completely_stored_is_applied() -> None:
    """OpenAPI: alternatives are ored, the schemes of one are anded."""
    security = ((KEY, BEARER), (QUERY,), (COOKIE,))

    request = apply(PLAIN, security, stored(key="k", query="q", cookie="c"))
    both = apply(PLAIN, security, stored(key="k", bearer="b", query="q"))

    assert request.url.endswith("api%20key=q")
    assert header(request, "X-Key") is None
    assert header(request, "Cookie") is None
    assert (header(both, "X-Key"), header(both, "Authorization"), both.url) == ("k", "Bearer b", PLAIN.url)


def test_without_security_nothing_is_applied() -> None:
    """OpenAPI: `security: []` sends no credential, whatever is stored."""
    assert apply(PLAIN, (), stored(key="k")) == PLAIN


def test_an_optional_credential_is_applied_when_stored() -> None:
    """Ours: an operation that also works without a credential gets one if there is one."""
    assert apply(PLAIN, ((), (KEY,)), {}) == PLAIN
    assert header(apply(PLAIN, ((), (KEY,)), stored(key="k")), "X-Key") == "k"


def test_a_missing_credential_is_named_and_nothing_is_sent() -> None:
    """Ours: the error names the schemes that are possible."""
    with pytest.raises(CredentialMissing, match="'key' with 'bearer' or 'query'"):
        apply(PLAIN, ((KEY, BEARER), (QUERY,)), stored(key="k"))


def test_a_credential_replaces_an_argument_in_its_place() -> None:
    """Ours: a caller can neither override nor double the stored credential."""
    request = UpstreamRequest(
        method="GET",
        url="https://api.example.com/x?api+key=mine&q=1&api%20key=mine",
        headers=(("x-key", "mine"), ("Cookie", "SID=mine; a=1")),
    )

    assert apply(request, ((KEY,),), stored(key="k")).headers == (("Cookie", "SID=mine; a=1"), ("X-Key", "k"))
    assert apply(request, ((QUERY,),), stored(query="k")).url == "https://api.example.com/x?q=1&api%20key=k"
    assert header(apply(request, ((COOKIE,),), stored(cookie="k")), "Cookie") == "a=1; SID=k"


def test_a_query_credential_on_a_url_without_query() -> None:
    """Ours: the query starts with the credential."""
    bare = UpstreamRequest(method="GET", url="https://api.example.com/x")

    assert apply(bare, ((QUERY,),), stored(query="k")).url == "https://api.example.com/x?api%20key=k"


@pytest.mark.parametrize("scheme", [KEY, QUERY, COOKIE, BASIC, BEARER])
@pytest.mark.parametrize("value", ["s3cret\r\nX-Evil: 1", "s3cret\n", "s3cret\x00", "\x7fs3cret"])
def test_a_stored_value_with_control_characters_is_refused_without_showing_it(scheme: SchemePlan, value: str) -> None:
    """Ours: a credential can neither add a header nor appear in an error."""
    with pytest.raises(CredentialMissing) as caught:
        apply(PLAIN, ((scheme,),), stored(**{scheme.name: value}))

    assert "s3cret" not in str(caught.value)
    assert scheme.name in str(caught.value)


@pytest.mark.parametrize("field", ["Host", "Content-Length", "Transfer-Encoding", "Content-Type", "a b", "", "X\r\nY"])
def test_a_scheme_cannot_fill_a_framing_header(field: str) -> None:
    """Ours: the document names the header, the gateway decides whether it is one for credentials."""
    scheme = SchemePlan(name="key", kind=SchemeKind.API_KEY_HEADER, field=field)

    with pytest.raises(CredentialMissing):
        apply(PLAIN, ((scheme,),), stored(key="k"))


def test_other_unusable_values() -> None:
    """RFC 7617: a user name has no colon; an empty key is none."""
    with pytest.raises(CredentialMissing):
        apply(PLAIN, ((BASIC,),), {"basic": Credential(username="a:b", value="c")})
    with pytest.raises(CredentialMissing):
        apply(PLAIN, ((KEY,),), stored(key=""))
    with pytest.raises(CredentialMissing):
        apply(PLAIN, ((BEARER,),), stored(bearer="é"))


def test_a_cookie_value_cannot_end_its_cookie() -> None:
    """RFC 6265: a character that a cookie value may not hold is encoded."""
    assert header(apply(PLAIN, ((COOKIE,),), stored(cookie="a; b=c")), "Cookie") == "SID=a%3B%20b%3Dc"
    assert header(apply(PLAIN, ((COOKIE,),), stored(cookie="a=b%/+")), "Cookie") == "SID=a=b%/+"


def test_credentials_show_in_no_representation() -> None:
    """Ours: logs that print a credential print nothing."""
    assert "s3" not in repr(Credential(value="s3", username="s3"))


def test_requests_with_other_secrets_use_other_connections() -> None:
    """ISO-1: the digest on a request is that of all secrets on it; without any it is empty."""
    scheme = SchemePlan(name="basic", kind=SchemeKind.BASIC)
    security = ((scheme,),)
    pairs = [("ann", "secret"), ("anns", "ecret"), ("ann", "other"), ("ann", "secret")]
    digests = [apply(PLAIN, security, {"basic": Credential(value=v, username=u)}).credential for u, v in pairs]

    assert digests[0] == digests[3]
    assert len(set(digests)) == 3
    assert apply(PLAIN, (), {}).credential == b""


def test_secrets_that_an_author_wrote_into_headers_count() -> None:
    """ISO-1: code of the operator and libraries bring their own credentials."""
    plain, key = ("Accept", "*/*"), ("X-Api-Key", "k")

    assert digest_of_headers([plain]) == b""
    assert digest_of_headers([plain, key]) == digest_of_headers([("x-api-key", "k")]) != b""
    assert digest_of_headers([("Authorization", "a")]) != digest_of_headers([("Authorization", "b")])
