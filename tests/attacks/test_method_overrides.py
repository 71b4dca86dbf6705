"""Headers and fields from which servers take another method or target than the one that was judged."""

import json
from typing import Any

import pytest

from gateway.definitions.handlers.parser import parse_handler
from gateway.definitions.handlers.safety import assess
from gateway.domain.primitives import Family
from gateway.domain.tenancy.policy import Safety
from gateway.domain.updates.import_reports import Status
from gateway.errors import HandlerInvalid
from gateway.upstream.client import UpstreamClient
from gateway.upstream.serialize.header_checks import is_argument_header
from tests.support.handler_bench import HandlerBench
from tests.support.openapi import fate, input_of, with_parameter
from tests.support.upstream import recording_upstream

HEADERS = (
    "X-HTTP-Method-Override",
    "x-http-method",
    "X-Method-Override",
    "X_HTTP_METHOD_OVERRIDE",
    "X-Original-URL",
    "x-rewrite-url",
)
FORM_TYPE = "application/x-www-form-urlencoded"
FORM = {"Content-Type": FORM_TYPE}
PARTS = {"Content-Type": "multipart/form-data; boundary=b"}
URL = "https://api.example.com/pets"
HARMLESS = (
    f"{URL}/{{{{ c }}}}",
    f"{URL}?s={{{{ c }}}}",
    f"{URL}/{{{{ c }}}}?x=1",
    f"{URL}/{{{{ c }}}}/orders/{{{{ d }}}}?state=open&page={{{{ p }}}}",
    f"{URL}/{{{{ c }}}}=1?x=1",
    f"{URL}?state=open&{{% if p %}}page={{{{ p }}}}&{{% endif %}}limit=3",
    f"{URL}{{% if p %}}?page={{{{ p }}}}{{% endif %}}",
    f"{URL}?filter[{{{{ column }}}}]={{{{ value }}}}",
    f"{URL}?{{{{ flag }}}}",
    f"{URL}?next=/a?{{{{ b }}}}=1",
)
"""Requests that no argument can give another method."""


def _http(method: str = "GET", url: str = URL, **more: Any) -> dict[str, Any]:
    return {"kind": "http", "method": method, "url": url, **more}


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("value", ["DELETE", "{{ method }}"])
def test_a_handler_declares_no_other_method(name: str, value: str) -> None:
    """Ours: neither as a constant nor from an argument, in a handler, a step or a lookup (SAF-1, ISO-4)."""
    request = _http(headers={name: value})
    step = {"method": "GET", "url": URL, "headers": {name: value}}
    for handler in (request, {"kind": "steps", "steps": [{"http": step}]}):
        with pytest.raises(HandlerInvalid):
            parse_handler(handler, Family.TOOL)


@pytest.mark.parametrize("name", HEADERS)
async def test_a_stored_handler_of_before_does_not_send_one(name: str) -> None:
    """Ours: a declaration from before the rule is refused when it is called (SAF-1)."""
    assert not is_argument_header(name)
    async with recording_upstream() as api, UpstreamClient(egress_allow=[api.authority]) as upstream:
        house = HandlerBench(upstream)
        house.has_tool("reads", _http(url=f"{api.url}/x"))
        house.replace_handler("reads", json.dumps(_http(url=f"{api.url}/x", headers={name: "DELETE"})).encode())

        assert (await house.call("reads"))["isError"] is True
        assert api.seen == []


@pytest.mark.parametrize(
    ("handler", "level"),
    [
        (_http(url=f"{URL}?_method=DELETE"), Safety.DANGEROUS),
        (_http(url=f"{URL}?a=1&%5Fmethod=delete"), Safety.DANGEROUS),
        (_http(url=f"{URL}?_method={{{{ m }}}}"), Safety.DANGEROUS),
        (_http(url=f"{URL}?_method=PUT"), Safety.MODERATE),
        (_http(url=f"{URL}?{{{{ n }}}}=DELETE"), Safety.DANGEROUS),
        (_http("POST", url=f"{URL}?a=1&_{{{{ n }}}}d={{{{ m }}}}&b=2"), Safety.DANGEROUS),
        (_http("POST", body="%5{{ n | url_encode }}={{ m | url_encode }}", headers=FORM), Safety.DANGEROUS),
        (_http(url=f"{URL}?_method=GET&_method=DELETE"), Safety.DANGEROUS),
        (_http(url=f"{URL}?a=1;_method=DELETE"), Safety.DANGEROUS),
        (_http(url=f"{URL}?+.Method=DELETE"), Safety.DANGEROUS),
        (_http(url=f"{URL}?_{{% comment %}}x{{% endcomment %}}method=DELETE"), Safety.DANGEROUS),
        (_http(url=f"{URL}?{{% if a %}}_met{{% else %}}b{{% endif %}}hod=DELETE"), Safety.DANGEROUS),
        (_http(url=URL + "?" + "{% if a %}x{% else %}y{% endif %}" * 9 + "=1"), Safety.DANGEROUS),
        (_http("POST", body="a=1&{{ n | url_encode }}=2", headers=FORM), Safety.DANGEROUS),
        (_http("POST", body="a=1&_method=delete", headers=FORM), Safety.DANGEROUS),
        (
            _http("POST", body="--b {{ n }}", headers=PARTS),
            Safety.DANGEROUS,
        ),
        (
            _http("POST", body='--b name="_method"', headers=PARTS),
            Safety.DANGEROUS,
        ),
        (_http(url=f"{URL}?a={{{{ n }}}}&b={{{{ m }}}}"), Safety.SAFE),
        (_http("POST", body={"_method": "DELETE"}), Safety.DANGEROUS),
        (_http("POST", body={"_method": "{{ m }}"}), Safety.DANGEROUS),
        (_http("POST", body={"_method": "PATCH"}), Safety.MODERATE),
        (_http("POST", body="a=1&_method=delete"), Safety.DANGEROUS),
        (_http("POST", body="a={{ n }}", headers=FORM), Safety.DANGEROUS),
        (
            _http("POST", body="a={{ n | url_encode }}&b={{ m | default: 'x' | url_encode }}", headers=FORM),
            Safety.MODERATE,
        ),
        (_http("POST", body="a={{ n | url_encode | url_decode }}", headers=FORM), Safety.DANGEROUS),
        (_http("POST", body="a={{ url_encoded }}", headers=FORM), Safety.DANGEROUS),
        (_http("POST", body="a={{ n | append: '}' }}", headers=FORM), Safety.DANGEROUS),
        (_http("POST", body="{% if n %}a={{ n }}{% endif %}", headers=FORM), Safety.DANGEROUS),
        (_http("POST", body="{% if n %}a={{ n | url_encode }}{% endif %}", headers=FORM), Safety.MODERATE),
        (
            _http(
                "POST",
                body="a={{ n }}",
                headers={"content-type": f"{FORM_TYPE[:4]}{{% if true %}}{FORM_TYPE[4:]}{{% endif %}}"},
            ),
            Safety.DANGEROUS,
        ),
        (_http("POST", body="{{ n }}", headers={"content-type": "{{ kind }}"}), Safety.DANGEROUS),
        (_http("POST", body="{{ n }}"), Safety.MODERATE),
        (_http("DELETE", url=f"{URL}?_method=GET"), Safety.DANGEROUS),
        (_http(url=f"{URL}?a_method=DELETE"), Safety.SAFE),
        (_http("POST", body={"a": {"_method": "DELETE"}}), Safety.MODERATE),
        *((_http(method, url=url), Safety.SAFE) for method in ("GET", "HEAD", "OPTIONS") for url in HARMLESS),
        (_http("POST", url=f"{URL}?a=1&x{{{{ n }}}}y={{{{ m }}}}"), Safety.MODERATE),
        (_http("POST", body="Dear {{ n }}, the total = {{ m }}"), Safety.MODERATE),
    ],
)
def test_a_method_in_a_field_counts(handler: dict[str, Any], level: Safety) -> None:
    """Ours: a field that frameworks take for the method raises the level, and never lowers it (SAF-1)."""
    assert assess(parse_handler(handler, Family.TOOL))[0] is level


@pytest.mark.parametrize(
    "parameter",
    [*({"name": name, "in": "header"} for name in HEADERS), {"name": "_method", "in": "query"}],
    ids=lambda one: one["name"],
)
def test_a_document_offers_no_other_method(parameter: dict[str, Any]) -> None:
    """Ours: an optional one is not offered, and an operation that needs one is skipped (SAF-1, OAS-3)."""
    given = {**parameter, "schema": {"type": "string"}}

    assert input_of(with_parameter(given))["properties"] == {}
    assert fate(with_parameter(given)).status is Status.DEGRADED
    assert fate(with_parameter({**given, "required": True})).status is Status.SKIPPED
