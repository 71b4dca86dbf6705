"""Declared handlers are read strictly: each kind, each family, every fault with its place."""

from typing import Any

import pytest

from gateway.definitions.handlers.parser import parse_handler
from gateway.definitions.handlers.specs import (
    AskStep,
    CallStep,
    FetchedValues,
    GatherStep,
    HandlerKind,
    HttpSpec,
    HttpStep,
    IfStep,
    ListedValues,
    LogStep,
    OpenApiSpec,
    ProgressStep,
    ReturnStep,
    RootsStep,
    SampleStep,
    SleepStep,
    StaticSpec,
    StepsSpec,
    TemplateSpec,
)
from gateway.domain.primitives import Family
from gateway.errors import HandlerInvalid

TEXT: dict[str, Any] = {"type": "text", "text": "a"}
MESSAGE: dict[str, Any] = {"role": "user", "content": TEXT}
ROOTS: dict[str, Any] = {"roots": {}}
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}


def steps(*given: object) -> dict[str, Any]:
    return {"kind": "steps", "steps": list(given)}


def request(**more: Any) -> dict[str, Any]:
    return {"kind": "http", "method": "POST", "url": "https://h/x"} | more


def refusal(raw: object, family: Family = Family.TOOL) -> list[tuple[str, str]]:
    with pytest.raises(HandlerInvalid) as caught:
        parse_handler(raw, family)
    return [(fault.pointer, fault.reason) for fault in caught.value.faults]


def test_a_static_tool() -> None:
    """Ours: content, structured content, and whether it is an error."""
    spec = parse_handler(
        {"kind": "static", "content": [TEXT], "isError": True, "structuredContent": {"a": 1}}, Family.TOOL
    )

    assert spec.kind is HandlerKind.STATIC
    assert spec.family is Family.TOOL
    assert spec.action == StaticSpec(content=(TEXT,), is_error=True, structured_content={"a": 1})


def test_static_resources_and_prompts() -> None:
    """Ours: each family has its own form."""
    contents = parse_handler({"kind": "static", "contents": [{"text": "a"}]}, Family.RESOURCE).action
    messages = parse_handler({"kind": "static", "messages": [MESSAGE]}, Family.PROMPT).action

    assert contents == StaticSpec(contents=({"text": "a"},))
    assert messages == StaticSpec(messages=(MESSAGE,))


def test_a_template_in_each_form() -> None:
    """Ours: text, JSON from a tree, or the protocol's own lists."""
    text = parse_handler({"kind": "template", "text": "a{{ b }}"}, Family.TOOL).action
    value = parse_handler({"kind": "template", "json": {"a": "{{ b }}"}, "isError": True}, Family.TOOL).action
    listed = parse_handler({"kind": "template", "contents": [], "mimeType": "a/b"}, Family.TEMPLATE).action

    assert isinstance(text, TemplateSpec)
    assert text.text is not None
    assert text.text.render({"b": 1}) == "a1"
    assert isinstance(value, TemplateSpec)
    assert value.json is not None
    assert value.json.render({"b": 1}) == {"a": 1}
    assert value.is_error
    assert isinstance(listed, TemplateSpec)
    assert listed.contents is not None
    assert listed.mime_type == "a/b"


def test_a_request() -> None:
    """Ours: everything that a request may have."""
    action = parse_handler(
        request(
            url="https://h/{{ a }}",
            headers={"X-A": "{{ b }}", "Accept": "text/plain"},
            body={"c": "{{ c }}"},
            credential="key",
            result={"pointer": "/a", "keep": ["/b/*"], "drop": ["/c"]},
            timeout_s=5,
        ),
        Family.TOOL,
    ).action

    assert isinstance(action, HttpSpec)
    assert (action.method, action.url.origin, action.credential, action.timeout_s) == ("POST", "https://h", "key", 5)
    assert [name for name, _ in action.headers] == ["X-A", "Accept"]
    assert action.body is not None
    assert (action.result.pointer, action.result.keep, action.result.drop) == ("/a", ("/b/*",), ("/c",))


def test_an_operation_under_a_new_name() -> None:
    """Ours: source, operation and what is fixed of its arguments."""
    raw = {"kind": "openapi", "source": "pets", "operation": "GET /pets/{id}", "arguments": {"id": "{{ id }}"}}
    action = parse_handler(raw, Family.TOOL).action

    assert isinstance(action, OpenApiSpec)
    assert (action.source, action.operation) == ("pets", "GET /pets/{id}")
    assert action.arguments.render({"id": 5}) == {"id": 5}


def test_every_step() -> None:
    """Ours: each verb, long and short."""
    action = parse_handler(
        steps(
            {"progress": 1},
            {"progress": {"progress": "{{ n }}", "total": 2, "message": "m"}},
            {"log": "said {{ x }}"},
            {"log": {"level": "warning", "data": {"a": 1}, "logger": "l"}},
            {"sleep": 0.5},
            {"ask": {"message": "Who?", "schema": SCHEMA}, "as": "who"},
            {"ask": {"message": "Go there", "url": "https://h/x", "key": "there"}},
            {"sample": {"messages": "Say {{ x }}", "maxTokens": 10}, "as": "said"},
            {"sample": {"messages": [MESSAGE], "maxTokens": 1, "systemPrompt": "s", "temperature": 0.5}},
            {"roots": {}, "as": "roots"},
            {"gather": [{"ask": {"message": "a", "key": "a"}}, {"roots": {"key": "b"}, "as": "c"}]},
            {"call": {"tool": "t", "arguments": {"a": "{{ x }}"}}, "as": "r"},
            {"call": {"tool": "t"}},
            {"http": {"method": "GET", "url": "https://h/x"}, "as": "h"},
            {"if": {"when": "a == 1", "then": [{"return": {"text": "a"}}], "else": [{"sleep": 1}]}},
            {"if": {"when": "a", "then": [{"return": {"content": [TEXT], "isError": True}}]}},
        ),
        Family.TOOL,
    ).action

    assert isinstance(action, StepsSpec)
    kinds: list[type] = [ProgressStep] * 2 + [LogStep] * 2 + [SleepStep] + [AskStep] * 2 + [SampleStep] * 2
    kinds += [RootsStep, GatherStep, CallStep, CallStep, HttpStep, IfStep, IfStep]
    assert [type(step) for step in action.steps] == kinds
    asked = [step.key for step in action.steps if isinstance(step, AskStep | SampleStep | RootsStep)]
    assert asked == ["who", "there", "said", "sample-4", "roots"]
    branch = action.steps[14]
    assert isinstance(branch, IfStep)
    assert isinstance(branch.then[0], ReturnStep)
    assert branch.otherwise == (SleepStep(seconds=1),)
    sampled = action.steps[7]
    assert isinstance(sampled, SampleStep)
    assert sampled.messages.render({"x": "hi"}) == [{"role": "user", "content": {"type": "text", "text": "Say hi"}}]


def test_completions_beside_a_prompt() -> None:
    """Ours: a list that is searched by its beginnings, or a lookup (PRM-3)."""
    raw = {
        "kind": "static",
        "messages": [MESSAGE],
        "completions": {
            "city": {"values": ["Berlin", "Bern", "Basel", "Bern"]},
            "id": {"http": {"url": "https://h/?q={{ value }}", "result": {"pointer": "/items"}}},
        },
    }
    spec = parse_handler(raw, Family.PROMPT, arguments=["city", "id"])

    city, identifier = spec.completions["city"], spec.completions["id"]
    assert isinstance(city, ListedValues)
    assert city.matching("ber") == ("Berlin", "Bern")
    assert city.matching("") == ("Berlin", "Bern", "Basel")
    assert isinstance(identifier, FetchedValues)
    assert identifier.http.method == "GET"
    assert identifier.http.result.pointer == "/items"


@pytest.mark.parametrize(
    ("raw", "pointer"),
    [
        (None, "/handler"),
        ([], "/handler"),
        ({}, "/handler/kind"),
        ({"kind": "python"}, "/handler/kind"),
        ({"kind": []}, "/handler/kind"),
        ({"kind": "static", "content": [object()]}, "/handler/content/0"),
        ({"kind": "static"}, "/handler/content"),
        ({"kind": "static", "content": [{"type": "x"}]}, "/handler/content/0/type"),
        ({"kind": "static", "contents": []}, "/handler/contents"),
        ({"kind": "static", "content": [], "isError": 1}, "/handler/isError"),
        ({"kind": "static", "content": [], "text": "a"}, "/handler/text"),
        ({"kind": "static", "content": [], "completions": {}}, "/handler/completions"),
        ({"kind": "template"}, "/handler"),
        ({"kind": "template", "text": "a", "json": 1}, "/handler"),
        ({"kind": "template", "text": 5}, "/handler/text"),
        ({"kind": "template", "text": "{{ a"}, "/handler/text"),
        ({"kind": "template", "json": {"a": ["{% x %}"]}}, "/handler/json/a/0"),
        ({"kind": "template", "content": "a"}, "/handler/content"),
        ({"kind": "template", "messages": []}, "/handler/messages"),
        ({"kind": "template", "text": "a", "mimeType": "a/b"}, "/handler/mimeType"),
        ({"kind": "http", "url": "https://h"}, "/handler/method"),
        (request(method="get"), "/handler/method"),
        (request(method="CONNECT"), "/handler/method"),
        (request(method="GET", body=1), "/handler/body"),
        (request(url=None), "/handler/url"),
        (request(url="https://{{ h }}/"), "/handler/url"),
        (request(url="https://h/{{ x"), "/handler/url"),
        (request(headers=[]), "/handler/headers"),
        (request(headers={"Host": "x"}), "/handler/headers/Host"),
        (request(headers={"authorization": "x"}), "/handler/headers/authorization"),
        (request(headers={"Cookie": "x"}), "/handler/headers/Cookie"),
        (request(headers={"X-Forwarded-For": "x"}), "/handler/headers/X-Forwarded-For"),
        (request(headers={"Proxy-Authorization": "x"}), "/handler/headers/Proxy-Authorization"),
        (request(headers={"Content-Length": "5"}), "/handler/headers/Content-Length"),
        (request(headers={"a b": "x"}), "/handler/headers/a b"),
        (request(headers={"X": "a\r\nB: c"}), "/handler/headers/X"),
        (request(headers={"X": "a", "x": "b"}), "/handler/headers/x"),
        (request(headers={"X": 5}), "/handler/headers/X"),
        (request(headers={f"X-{n}": "a" for n in range(33)}), "/handler/headers"),
        (request(body={"a": "{{"}), "/handler/body/a"),
        (request(credential=""), "/handler/credential"),
        (request(timeout_s=3601), "/handler/timeout_s"),
        (request(timeout_s=0), "/handler/timeout_s"),
        (request(result=[]), "/handler/result"),
        (request(result={"pointer": "a"}), "/handler/result/pointer"),
        (request(result={"keep": []}), "/handler/result/keep"),
        (request(result={"keep": [""]}), "/handler/result/keep/0"),
        (request(result={"drop": ["/a", "b"]}), "/handler/result/drop/1"),
        (request(result={"jq": "."}), "/handler/result/jq"),
        (request(verify=False), "/handler/verify"),
        ({"kind": "openapi", "source": "a"}, "/handler/operation"),
        ({"kind": "openapi", "operation": "a"}, "/handler/source"),
        ({"kind": "openapi", "source": "a", "operation": "b", "arguments": []}, "/handler/arguments"),
        ({"kind": "steps"}, "/handler/steps"),
        (steps(), "/handler/steps"),
        (steps(5), "/handler/steps/0"),
        (steps({}), "/handler/steps/0"),
        (steps({"sleep": 1, "log": "a"}), "/handler/steps/0"),
        (steps({"run": "rm"}), "/handler/steps/0/run"),
        (steps({"sleep": 1, "as": "x"}), "/handler/steps/0/as"),
        (steps({"roots": {}, "as": "a b"}), "/handler/steps/0/as"),
        (steps({"roots": {}, "as": "arguments"}), "/handler/steps/0/as"),
        (steps({"progress": "1"}), "/handler/steps/0/progress"),
        (steps({"progress": True}), "/handler/steps/0/progress"),
        (steps({"progress": {"total": 1}}), "/handler/steps/0/progress/progress"),
        (steps({"progress": {"progress": 1, "message": 5}}), "/handler/steps/0/progress/message"),
        (steps({"log": 5}), "/handler/steps/0/log"),
        (steps({"log": {"level": "loud", "data": 1}}), "/handler/steps/0/log/level"),
        (steps({"log": {"level": "info"}}), "/handler/steps/0/log/data"),
        (steps({"sleep": 31}), "/handler/steps/0/sleep"),
        (steps({"sleep": "1"}), "/handler/steps/0/sleep"),
        (steps({"sleep": 20}, {"sleep": 20}), "/handler/steps/1/sleep"),
        (steps({"ask": {}}), "/handler/steps/0/ask/message"),
        (steps({"ask": {"message": "m", "schema": {"type": "array"}}}), "/handler/steps/0/ask/schema/type"),
        (steps({"ask": {"message": "m", "url": "https://h/{{ x }}"}}), "/handler/steps/0/ask/url"),
        (steps({"ask": {"message": "m", "url": "javascript:x"}}), "/handler/steps/0/ask/url"),
        (steps({"ask": {"message": "m", "url": "https://h/", "schema": SCHEMA}}), "/handler/steps/0/ask/url"),
        (steps({"ask": {"message": "m", "key": "a/b"}}), "/handler/steps/0/ask/key"),
        (steps({"roots": {"key": "a"}}, {"roots": {"key": "a"}}), "/handler/steps/1/roots/key"),
        (steps({"sample": {"maxTokens": 5}}), "/handler/steps/0/sample/messages"),
        (steps({"sample": {"messages": "a"}}), "/handler/steps/0/sample/maxTokens"),
        (steps({"sample": {"messages": "{{", "maxTokens": 5}}), "/handler/steps/0/sample/messages"),
        (steps({"sample": {"messages": 5, "maxTokens": 5}}), "/handler/steps/0/sample/messages"),
        (steps({"sample": {"messages": "a", "maxTokens": 0}}), "/handler/steps/0/sample/maxTokens"),
        (steps({"gather": []}), "/handler/steps/0/gather"),
        (steps({"gather": [{"sleep": 1}]}), "/handler/steps/0/gather/0/sleep"),
        (steps({"gather": [ROOTS] * 11}), "/handler/steps/0/gather"),
        (steps({"call": {}}), "/handler/steps/0/call/tool"),
        (steps({"call": {"tool": "t", "arguments": []}}), "/handler/steps/0/call/arguments"),
        (steps({"call": "t"}), "/handler/steps/0/call"),
        (steps({"http": {"method": "GET"}}), "/handler/steps/0/http/url"),
        (steps({"if": {"then": [{"sleep": 1}]}}), "/handler/steps/0/if/when"),
        (steps({"if": {"when": "a ==", "then": [{"sleep": 1}]}}), "/handler/steps/0/if/when"),
        (steps({"if": {"when": "a"}}), "/handler/steps/0/if/then"),
        (steps({"if": {"when": "a", "then": [{"sleep": 1}], "else": []}}), "/handler/steps/0/if/else"),
        (steps({"return": {}}), "/handler/steps/0/return"),
        (steps({"return": {"messages": []}}), "/handler/steps/0/return/messages"),
        (steps(*[{"sleep": 0}] * 101), "/handler/steps"),
    ],
)
def test_a_broken_handler_is_refused_where_it_is_broken(raw: object, pointer: str) -> None:
    """Ours: unknown fields, wrong types and wrong values, as pointers into what was sent (PRG-3)."""
    assert pointer in [place for place, _ in refusal(raw)]


@pytest.mark.parametrize(
    ("raw", "family", "pointer"),
    [
        ({"kind": "static", "contents": []}, Family.RESOURCE, "/handler/contents"),
        ({"kind": "static", "contents": [{"text": "a"}], "isError": True}, Family.RESOURCE, "/handler/isError"),
        ({"kind": "static", "content": []}, Family.PROMPT, "/handler/content"),
        (
            {"kind": "static", "messages": [{"role": "system", "content": TEXT}]},
            Family.PROMPT,
            "/handler/messages/0/role",
        ),
        ({"kind": "template", "text": "a", "mimeType": "x"}, Family.RESOURCE, "/handler/mimeType"),
        ({"kind": "template", "contents": {}}, Family.RESOURCE, "/handler/contents"),
        (
            {"kind": "static", "messages": [MESSAGE], "completions": {"a": {}}},
            Family.PROMPT,
            "/handler/completions/a",
        ),
        (
            {"kind": "static", "messages": [MESSAGE], "completions": {"a": 5}},
            Family.PROMPT,
            "/handler/completions/a",
        ),
        (
            {"kind": "static", "messages": [MESSAGE], "completions": {"a": {"values": [5]}}},
            Family.PROMPT,
            "/handler/completions/a/values/0",
        ),
        (
            {"kind": "static", "messages": [MESSAGE], "completions": {"a": {"http": {"method": "POST"}}}},
            Family.PROMPT,
            "/handler/completions/a/http/method",
        ),
    ],
)
def test_each_family_has_its_own_form(raw: object, family: Family, pointer: str) -> None:
    """Ours: an answer of another family is refused."""
    assert pointer in [place for place, _ in refusal(raw, family)]


def test_a_completion_for_nothing_is_refused() -> None:
    """Ours: completions name arguments that are there."""
    raw: dict[str, Any] = {"kind": "static", "messages": [MESSAGE], "completions": {"a": {"values": []}}}

    with pytest.raises(HandlerInvalid, match="completions"):
        parse_handler(raw, Family.PROMPT, arguments=["b"])


def test_branches_are_bounded_in_depth_and_in_all() -> None:
    """Ours: eight levels, a hundred steps in all places."""
    deep: dict[str, Any] = {"sleep": 0}
    for _ in range(8):
        deep = {"if": {"when": "a", "then": [deep]}}
    wide: dict[str, Any] = {"if": {"when": "a", "then": [{"sleep": 0}] * 50, "else": [{"sleep": 0}] * 50}}

    assert any("nested more than 8" in reason for _, reason in refusal(steps(deep)))
    assert any("more than 100 steps in total" in reason for _, reason in refusal(steps(wide)))


def test_pointers_begin_at_the_given_place() -> None:
    """Ours: an error points into the body as it was sent."""
    with pytest.raises(HandlerInvalid) as caught:
        parse_handler({"kind": "template"}, Family.TOOL, where="")

    assert caught.value.faults[0].pointer == ""


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {}},
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "title": "N", "default": "John Doe", "minLength": 1, "format": "email"},
                "age": {"type": "integer", "minimum": 0, "maximum": 150, "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive"], "default": "active"},
                "verified": {"type": "boolean", "default": True},
                "titled": {"type": "string", "oneOf": [{"const": "a", "title": "A"}]},
                "legacy": {"type": "string", "enum": ["a"], "enumNames": ["A"]},
                "many": {"type": "array", "items": {"type": "string", "enum": ["a"]}, "minItems": 1},
                "manyTitled": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
            },
            "required": ["name"],
        },
    ],
)
def test_a_form_that_clients_can_show_is_taken(schema: dict[str, Any]) -> None:
    """MCP: elicitation asks for flat values and choices."""
    assert parse_handler(steps({"ask": {"message": "m", "schema": schema}}), Family.TOOL)


@pytest.mark.parametrize(
    ("properties", "pointer"),
    [
        ({"a": {"type": "object"}}, "/a/type"),
        ({"a": {}}, "/a/type"),
        ({"a": 5}, "/a/type"),
        ({"a": {"type": "string", "format": "regex"}}, "/a/format"),
        ({"a": {"type": "string", "items": {}}}, "/a/items"),
        ({"a": {"type": "string", "enum": []}}, "/a/enum"),
        ({"a": {"type": "string", "oneOf": [{"const": "a"}]}}, "/a/oneOf/0/title"),
        ({"a": {"type": "string", "pattern": "(?=x)"}}, "/a/pattern"),
        ({"a": {"type": "string", "pattern": 5}}, "/a/pattern"),
        ({"a": {"type": "array"}}, "/a/items"),
        ({"a": {"type": "array", "items": {"type": "string"}}}, "/a/items"),
        ({"a": {"type": "array", "items": 5}}, "/a/items"),
        ({f"a{number}": {"type": "string"} for number in range(51)}, ""),
    ],
)
def test_a_form_that_clients_cannot_show_is_refused(properties: dict[str, Any], pointer: str) -> None:
    """MCP: no nested objects, no free arrays."""
    schema = {"type": "object", "properties": properties}
    found = [place for place, _ in refusal(steps({"ask": {"message": "m", "schema": schema}}))]

    assert f"/handler/steps/0/ask/schema/properties{pointer}" in found


def test_a_required_field_of_a_form_has_to_be_there() -> None:
    """JSON Schema would take it; a user could never send it."""
    schema: dict[str, Any] = {"type": "object", "properties": {}, "required": ["a"]}

    assert "/handler/steps/0/ask/schema/required/0" in [
        place for place, _ in refusal(steps({"ask": {"message": "m", "schema": schema}}))
    ]
