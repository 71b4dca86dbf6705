"""Security requirements: alternatives of schemes, and unsupported ones of a document."""

from typing import Any

import pytest

from gateway.domain.http.plans import SchemeKind, SchemePlan
from gateway.domain.updates.import_reports import Status
from tests.support.openapi import compile_it, fate, only, operation

SCHEMES: dict[str, Any] = {
    "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query": {"type": "apiKey", "in": "query", "name": "api_key"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "SID"},
    "basic": {"type": "http", "scheme": "Basic"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "oauth": {"type": "oauth2", "flows": {}},
    "oidc": {"type": "openIdConnect", "openIdConnectUrl": "https://h"},
    "mtls": {"type": "mutualTLS"},
    "digest": {"type": "http", "scheme": "digest"},
    "odd": {"type": "apiKey", "in": "header", "name": "bad name"},
    "external": {"$ref": "other.yaml#/x"},
    "broken": 7,
    "listed": {"type": ["oauth2"]},
    "nested": {"type": "http", "scheme": {}},
}


def secured(security: Any, *, default: Any = None) -> dict[str, Any]:
    node = {} if security is None else {"security": security}
    return operation(node, components={"securitySchemes": SCHEMES}, security=default)


@pytest.mark.parametrize(
    ("name", "kind", "field"),
    [
        ("key", SchemeKind.API_KEY_HEADER, "X-Key"),
        ("query", SchemeKind.API_KEY_QUERY, "api_key"),
        ("cookie", SchemeKind.API_KEY_COOKIE, "SID"),
        ("basic", SchemeKind.BASIC, "Authorization"),
        ("bearer", SchemeKind.BEARER, "Authorization"),
        ("oauth", SchemeKind.BEARER, "Authorization"),
        ("oidc", SchemeKind.BEARER, "Authorization"),
    ],
)
def test_a_scheme_determines_the_place_of_its_credential(name: str, kind: SchemeKind, field: str) -> None:
    """OpenAPI: security schemes."""
    assert only(secured([{name: []}])).plan.security == ((SchemePlan(name=name, kind=kind, field=field),),)


def test_requirements_are_alternatives_of_sets() -> None:
    """OpenAPI: one of the list, all of each; an empty one means none is needed."""
    plan = only(secured([{"key": [], "query": []}, {"bearer": None}, {}])).plan

    assert [[scheme.name for scheme in alternative] for alternative in plan.security] == [
        ["key", "query"],
        ["bearer"],
        [],
    ]


def test_the_document_decides_unless_the_operation_does() -> None:
    """OpenAPI: an empty list at the operation removes what the document requires."""
    assert only(secured(None, default=[{"key": []}])).plan.security[0][0].name == "key"
    assert only(secured([], default=[{"key": []}])).plan.security == ()


@pytest.mark.parametrize("name", ["key", "query", "cookie", "basic", "bearer", "oauth", "oidc"])
def test_a_credential_that_lacks_is_a_need_of_the_source(name: str) -> None:
    """Ours: every scheme is reported in the same way, and not once its credential is stored (OAS-3)."""
    report = compile_it(secured([{name: ["scope"]}])).report
    [need] = report.needs(())

    assert (fate(secured([{name: []}])).status, report.warnings) == (Status.OK, ())
    assert (need.scheme, need.operations, len(need.ways)) == (name, 1, 2 if name in {"oauth", "oidc"} else 1)
    assert all(f"{name}=" in way for way in need.ways)
    assert report.needs({name}) == ()


def test_alternatives_are_ways_to_meet_one_need() -> None:
    """Ours: of several alternatives the one that lacks least is named, with the others as ways (OAS-3)."""
    choice = compile_it(secured([{"key": [], "query": []}, {"bearer": []}])).report

    [need] = choice.needs(())
    assert (need.scheme, need.ways[-1]) == ("bearer", "instead: a credential for key and query")
    assert [one.scheme for one in choice.needs({"key"})] == ["query"]
    assert choice.needs({"key", "query"}) == choice.needs({"bearer"}) == ()
    assert compile_it(secured([{"oauth": []}, {}])).report.needs(()) == ()


def test_the_way_to_an_account_has_the_urls_of_the_document_quoted() -> None:
    """Ours: a document cannot write a command for the shell of an administrator (OAS-3)."""
    flow = {"authorizationUrl": "https://a.example/x;id", "tokenUrl": "/token", "scopes": {"read": "", "$(id)": ""}}
    schemes = {"o": {"type": "oauth2", "flows": {"authorizationCode": flow}}}
    raw = operation({"security": [{"o": []}]}, components={"securitySchemes": schemes})

    [need] = compile_it(raw).report.needs(())
    assert "--authorization-url 'https://a.example/x;id' --token-url URL --scope read --scope '$(id)'," in need.ways[1]
    issuer = {"type": "openIdConnect", "openIdConnectUrl": "https://a.example/.well-known/openid-configuration"}
    raw = operation({"security": [{"o": []}]}, components={"securitySchemes": {"o": issuer}})
    assert "--server https://a.example," in compile_it(raw).report.needs(())[0].ways[1]


@pytest.mark.parametrize("name", ["mtls", "digest", "odd", "external", "broken", "listed", "nested", "undeclared"])
def test_schemes_that_cannot_be_applied_leave_the_other_alternatives(name: str) -> None:
    """Ours: an alternative is usable as a whole or not at all."""
    plan = only(secured([{name: [], "key": []}, {"bearer": []}])).plan

    assert [[scheme.name for scheme in alternative] for alternative in plan.security] == [["bearer"]]


@pytest.mark.parametrize("security", [[{"mtls": []}], [{"digest": []}], [{"undeclared": []}], [7]])
def test_without_a_usable_alternative_the_report_has_a_line(security: object) -> None:
    """Ours: the operation is called without a credential, and everybody knows."""
    report = fate(secured(security))

    assert report.status is Status.DEGRADED
    assert "without a credential" in report.reasons[0]


def test_usable_parts_of_the_only_alternative_are_applied() -> None:
    """Ours: a client certificate that we do not have does not take the key away as well."""
    raw = secured([{"mtls": [], "key": []}])

    assert [[scheme.name for scheme in alternative] for alternative in only(raw).plan.security] == [["key"]]
    assert "with a part of its credentials" in fate(raw).reasons[0]


@pytest.mark.parametrize(
    ("token_url", "resolved"),
    [
        ("https://auth.example/token", "https://auth.example/token"),
        ("/token", "https://api.example.com/token"),
        ("token", "https://api.example.com/token"),
    ],
)
def test_client_credentials_have_a_token_url_and_the_scopes_of_the_operation(token_url: str, resolved: str) -> None:
    """OpenAPI: the OAuth flow of clients; nothing is lost, so the operation is as it should be."""
    flows = {"clientCredentials": {"tokenUrl": token_url, "scopes": {"read": "", "write": ""}}}
    schemes = {"o": {"type": "oauth2", "flows": flows}}
    raw = operation({"security": [{"o": ["read", "wri te", 7]}]}, components={"securitySchemes": schemes})
    [[scheme]] = only(raw).plan.security

    assert scheme.kind is SchemeKind.CLIENT_CREDENTIALS
    assert (scheme.token_url, scheme.scopes) == (resolved, ("read",))
    assert fate(raw).status is Status.OK


def test_a_broken_token_url_costs_the_credential_of_its_operations() -> None:
    """Ours: no token URL can cost the whole document (OAS-1)."""
    flows = {"clientCredentials": {"tokenUrl": "http://[", "scopes": {"read": ""}}}
    raw = operation(
        {"security": [{"o": []}]}, components={"securitySchemes": {"o": {"type": "oauth2", "flows": flows}}}
    )

    assert fate(raw).status is Status.DEGRADED
    reason = "it is called without a credential: the token URL of 'o' is not a URL: Invalid IPv6 URL"
    assert fate(raw).reasons == (reason,)


def test_another_scheme_of_http_is_sent_by_its_name() -> None:
    """RFC 9110: `Authorization` holds the name of the scheme and the credential."""
    schemes = {"t": {"type": "http", "scheme": "Token"}}
    raw = operation({"security": [{"t": []}]}, components={"securitySchemes": schemes})

    assert only(raw).plan.security == ((SchemePlan(name="t", kind=SchemeKind.HTTP, field="Token"),),)


def test_only_applicable_schemes_can_have_credentials() -> None:
    """Ours: nothing is stored that would never be used."""
    names = compile_it(secured([])).scheme_names

    assert names == ("key", "query", "cookie", "basic", "bearer", "oauth", "oidc")
