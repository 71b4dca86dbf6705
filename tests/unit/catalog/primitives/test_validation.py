"""A primitive as it was sent, judged by itself."""

from typing import Any

import msgspec
import pytest

from gateway.catalog.primitives.validation import prepare
from gateway.domain.primitives import CalledTool, Family, OriginRequest, PinnedOperation
from gateway.domain.tenancy.own_primitives import key_of
from gateway.domain.tenancy.policy import Safety
from gateway.errors import DefinitionInvalid, HandlerInvalid, ToolValidationError
from tests.support.own_primitives import own
from tests.support.primitives import OPEN, prompt, resource, static_tool, template, text_prompt, text_resource, tool


@pytest.mark.parametrize(
    ("family", "body", "name"),
    [
        (Family.TOOL, static_tool("say"), "say"),
        (Family.RESOURCE, text_resource("docs://a"), "docs://a"),
        (Family.TEMPLATE, template("docs://{id}", {"kind": "template", "text": "x", "mimeType": "a/b"}), "docs://{id}"),
        (Family.PROMPT, text_prompt("greet"), "greet"),
    ],
)
def test_each_family_is_found_by_its_own_word(family: Family, body: dict[str, Any], name: str) -> None:
    """Ours: names of tools and prompts, URIs of resources, URI templates of templates (PRG-3)."""
    ready = prepare(own(family, body))
    assert (key_of(ready), ready.assessed, ready.references) == (name, Safety.SAFE, ())
    assert msgspec.json.decode(ready.definition) == body["definition"]
    assert msgspec.json.decode(ready.handler) == body["handler"]


def test_faults_point_into_the_body_for_definition_and_handler_at_once() -> None:
    """Ours: one refusal names every place, in the body as it was sent (TDF-1, PRG-3)."""
    schema = {"type": "object", "properties": {"a": {"type": "strange"}}}
    with pytest.raises(ToolValidationError) as refused:
        prepare(own(Family.TOOL, tool("x", {"kind": "http", "method": "GET"}, schema=schema)))
    pointers = [fault.pointer for fault in refused.value.faults]
    assert "/definition/inputSchema/properties/a/type" in pointers
    assert "/handler/url" in pointers


@pytest.mark.parametrize(
    ("family", "body", "pointer"),
    [
        (Family.TOOL, tool("x", {"kind": "none"}), "/handler/kind"),
        (Family.TOOL, {"definition": {}, "handler": static_tool("x")["handler"]}, "/definition/name"),
        (Family.PROMPT, prompt("x", {"kind": "template", "text": "{{"}), "/handler/text"),
        (Family.RESOURCE, resource("docs://a", {"kind": "static", "contents": [{"text": "?"}]}), "/handler/contents/0"),
        (Family.TOOL, tool("x", {"kind": "steps", "steps": [{"sleep": 99}]}), "/handler/steps/0/sleep"),
    ],
)
def test_a_fault_has_its_place(family: Family, body: dict[str, Any], pointer: str) -> None:
    """Ours: the message names the place for the author of the body (PRG-3)."""
    with pytest.raises(DefinitionInvalid) as refused:
        prepare(own(family, body))
    assert any(fault.pointer.startswith(pointer) for fault in refused.value.faults), refused.value.faults


_BLANK = {"kind": "static", "contents": [{"text": "x"}]}
_SYSTEM = {"role": "system", "content": {"type": "text", "text": "{{ a }}"}}
_OUTPUT: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
_STATIC: dict[str, Any] = {"kind": "static", "content": [{"type": "text", "text": "x"}]}


def _returns(**answer: Any) -> dict[str, Any]:
    """Steps that return in a branch."""
    inner = {"if": {"when": "a", "then": [{"log": "x"}, {"return": answer}]}}
    return {"kind": "steps", "steps": [{"if": {"when": "b", "then": [{"log": "y"}], "else": [inner]}}]}


_INNER = "/handler/steps/0/if/else/0/if/then/1/return"


@pytest.mark.parametrize(
    ("family", "body", "pointer"),
    [
        (Family.RESOURCE, resource("docs://a", {"kind": "template", "text": "x"}), "/handler/mimeType"),
        (Family.TEMPLATE, template("docs://{a}", {"kind": "template", "text": "{{ a }}"}), "/handler/mimeType"),
        (Family.TEMPLATE, template("docs://{a}", _BLANK), "/handler/contents/0/mimeType"),
        (
            Family.TEMPLATE,
            template("docs://{a}", {"kind": "template", "contents": [{"text": "{{ a }}"}]}),
            "/handler/contents/0/mimeType",
        ),
        (Family.RESOURCE, resource("docs://a", _returns(text="x")), f"{_INNER}/mimeType"),
        (Family.RESOURCE, resource("docs://a", {"kind": "steps", "steps": [{"log": "x"}]}), "/handler/steps"),
        (Family.PROMPT, prompt("p", {"kind": "steps", "steps": [{"log": "x"}]}), "/handler/steps"),
        (Family.PROMPT, prompt("p", {"kind": "template", "messages": [_SYSTEM]}), "/handler/messages/0/role"),
        (Family.PROMPT, prompt("p", _returns(messages=[_SYSTEM])), f"{_INNER}/messages/0/role"),
        (
            Family.PROMPT,
            prompt("p", {"kind": "template", "messages": [{"role": "{{ a }}", "content": {"type": "text"}}]}),
            "/handler/messages/0/content/text",
        ),
        (
            Family.TOOL,
            tool("t", {"kind": "template", "content": [{"type": "image", "data": "!", "mimeType": "{{ a }}"}]}),
            "/handler/content/0/data",
        ),
        (
            Family.PROMPT,
            prompt("p", {"kind": "template", "messages": [*[{**_SYSTEM, "role": "{{ a }}"}] * 100, _SYSTEM]}),
            "/handler/messages/100/role",
        ),
        (
            Family.TOOL,
            tool("t", {"kind": "template", "content": [{"type": "text", "text": ["x" * 1000] * 1000}]}),
            "/handler/content/0",
        ),
        (
            Family.TOOL,
            tool("t", {"kind": "template", "content": [{"type": "text", "text": "{{ a }}"}] * 1001}),
            "/handler/content",
        ),
        (Family.TOOL, tool("t", _STATIC, definition={"outputSchema": _OUTPUT}), "/handler/structuredContent"),
        (
            Family.TOOL,
            tool("t", {**_STATIC, "structuredContent": {"n": "1"}}, definition={"outputSchema": _OUTPUT}),
            "/handler/structuredContent/n",
        ),
        (
            Family.TOOL,
            tool("t", {"kind": "template", "json": {"n": "1"}}, definition={"outputSchema": _OUTPUT}),
            "/handler/json/n",
        ),
        (Family.TOOL, tool("t", _returns(text="x"), definition={"outputSchema": _OUTPUT}), f"{_INNER}/text"),
        (
            Family.TOOL,
            tool("t", {"kind": "steps", "steps": [{"log": "x"}]}, definition={"outputSchema": _OUTPUT}),
            "/handler/steps",
        ),
    ],
)
def test_a_handler_with_an_unsendable_answer_is_refused(family: Family, body: dict[str, Any], pointer: str) -> None:
    """Ours: a wrong shape is found when it is stored, not when it is read (RES-1, PRM-2, TDF-5, CAL-4)."""
    with pytest.raises(HandlerInvalid) as refused:
        prepare(own(family, body))

    assert [fault.pointer for fault in refused.value.faults] == [pointer]


@pytest.mark.parametrize(
    ("family", "body"),
    [
        (Family.TEMPLATE, template("docs://{a}", {"kind": "template", "text": "x"}, mimeType="text/plain")),
        (Family.TEMPLATE, template("docs://{a}", _BLANK, mimeType="text/plain")),
        (Family.RESOURCE, resource("docs://a", {"kind": "template", "json": {}})),
        (Family.RESOURCE, resource("docs://a", {"kind": "http", "method": "GET", "url": "https://a.example/"})),
        (
            Family.TEMPLATE,
            template(
                "docs://{a}", {"kind": "template", "contents": [{"mimeType": "{{ a }}", "uri": "{{ a }}", "text": 7}]}
            ),
        ),
        (Family.PROMPT, prompt("p", {"kind": "template", "messages": [{**_SYSTEM, "role": "{{ a }}"}]})),
        (Family.PROMPT, prompt("p", {"kind": "template", "messages": ["{{ a }}"]})),
        (
            Family.PROMPT,
            prompt(
                "p",
                {
                    "kind": "template",
                    "messages": [
                        {"role": "user", "content": "{{ a }}"},
                        {"role": "user", "content": {"type": "{{ a }}", "anything": 1}},
                        {"role": "user", "content": {"type": "resource", "resource": {"uri": "docs://{{ a }}"}}},
                        {
                            "role": "user",
                            "content": {"type": "text", "text": "x", "annotations": {"audience": ["{{ a }}"]}},
                        },
                    ],
                },
            ),
        ),
        (Family.TOOL, tool("t", {**_STATIC, "isError": True}, definition={"outputSchema": _OUTPUT})),
        (Family.TOOL, tool("t", {"kind": "template", "json": {"n": "{{ n }}"}}, definition={"outputSchema": _OUTPUT})),
        (Family.TOOL, tool("t", {"kind": "steps", "steps": [{"log": "x"}]})),
    ],
)
def test_a_handler_that_may_answer_rightly_is_taken(family: Family, body: dict[str, Any]) -> None:
    """Ours: a part that depends on the arguments is judged when they are there (PRG-3)."""
    assert prepare(own(family, body)).family is family


def test_a_completion_is_for_an_argument_that_there_is() -> None:
    """Ours: a template that no client can request is refused (PRM-3)."""
    handler = {"kind": "template", "text": "x", "completions": {"b": {"values": ["1"]}}}
    with pytest.raises(HandlerInvalid):
        prepare(own(Family.PROMPT, prompt("p", handler, arguments=[{"name": "a"}])))
    with pytest.raises(HandlerInvalid):
        prepare(own(Family.TEMPLATE, template("docs://{a}", {**handler, "mimeType": "text/plain"})))


def test_everything_a_handler_names_is_found_with_its_place() -> None:
    """Ours: tools, operations, origins and credentials can all be pointed at (PRG-3)."""
    http = {"method": "DELETE", "url": "https://API.example:443/x", "credential": "c"}
    steps: list[dict[str, Any]] = [
        {"http": http, "as": "gone"},
        {
            "if": {
                "when": "gone.ok == true",
                "then": [{"call": {"tool": "first"}}],
                "else": [{"log": "no"}, {"call": {"tool": "second"}}],
            }
        },
        {"return": {"text": "done"}},
    ]
    ready = prepare(own(Family.TOOL, tool("x", {"kind": "steps", "steps": steps})))
    assert list(ready.references) == [
        OriginRequest(pointer="/handler/steps/0/http", origin="https://API.example:443", credential="c"),
        CalledTool(pointer="/handler/steps/1/if/then/0/call", name="first"),
        CalledTool(pointer="/handler/steps/1/if/else/1/call", name="second"),
    ]
    assert ready.refers == ("credential:c", "tool:first", "tool:second")
    assert ready.assessed is Safety.DANGEROUS


def test_lookups_of_completions_and_pinned_operations_are_references_too() -> None:
    """Ours: no way to name a thing goes unseen (PRG-3)."""
    lookup = {
        "kind": "template",
        "text": "x",
        "completions": {"a/b": {"http": {"url": "https://a.example/{{ value }}"}}},
    }
    [found] = prepare(own(Family.PROMPT, prompt("p", lookup, arguments=[{"name": "a/b"}]))).references
    assert found == OriginRequest(pointer="/handler/completions/a~1b/http", origin="https://a.example", credential=None)
    pinned: dict[str, Any] = {"kind": "openapi", "source": "pets", "operation": "GET /pets", "arguments": {}}
    ready = prepare(own(Family.TOOL, tool("x", pinned, schema=OPEN)))
    assert list(ready.references) == [PinnedOperation(pointer="/handler", source="pets", operation="GET /pets")]
    assert (ready.refers, ready.assessed) == (("operation:pets:GET /pets",), Safety.SAFE)
