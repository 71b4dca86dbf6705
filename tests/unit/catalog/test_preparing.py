"""A primitive as it was sent, judged by itself."""

from typing import Any

import msgspec
import pytest

from gateway.catalog.preparing import PrimitiveDraft, prepare
from gateway.catalog.references import CalledTool, PinnedOperation, Request
from gateway.domain.policy import Safety
from gateway.domain.primitives import Family
from gateway.errors import DefinitionInvalid, HandlerInvalid, ToolValidationError
from tests.support.primitives import OPEN, prompt, resource, static_tool, template, text_prompt, text_resource, tool


def _draft(body: dict[str, Any]) -> PrimitiveDraft:
    return PrimitiveDraft(definition=body["definition"], handler=body["handler"])


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
    ready = prepare(family, _draft(body))
    assert (ready.name, ready.level, ready.references) == (name, Safety.SAFE, [])
    assert msgspec.json.decode(ready.definition) == body["definition"]
    assert msgspec.json.decode(ready.handler) == body["handler"]


def test_faults_point_into_the_body_for_definition_and_handler_at_once() -> None:
    """Ours: one refusal names every place, in the body as it was sent (TDF-1, PRG-3)."""
    schema = {"type": "object", "properties": {"a": {"type": "strange"}}}
    with pytest.raises(ToolValidationError) as refused:
        prepare(Family.TOOL, _draft(tool("x", {"kind": "http", "method": "GET"}, schema=schema)))
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
    """Ours: whoever wrote the body is told where to look (PRG-3)."""
    with pytest.raises(DefinitionInvalid) as refused:
        prepare(family, _draft(body))
    assert any(fault.pointer.startswith(pointer) for fault in refused.value.faults), refused.value.faults


def test_a_completion_is_for_an_argument_that_there_is() -> None:
    """Ours: what no client can ask for is refused (PRM-3)."""
    handler = {"kind": "template", "text": "x", "completions": {"b": {"values": ["1"]}}}
    with pytest.raises(HandlerInvalid):
        prepare(Family.PROMPT, _draft(prompt("p", handler, arguments=[{"name": "a"}])))
    with pytest.raises(HandlerInvalid):
        prepare(Family.TEMPLATE, _draft(template("docs://{a}", {**handler, "mimeType": "text/plain"})))


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
    ready = prepare(Family.TOOL, _draft(tool("x", {"kind": "steps", "steps": steps})))
    assert list(ready.references) == [
        Request(pointer="/handler/steps/0/http", origin="https://API.example:443", credential="c"),
        CalledTool(pointer="/handler/steps/1/if/then/0/call", name="first"),
        CalledTool(pointer="/handler/steps/1/if/else/1/call", name="second"),
    ]
    assert ready.refers == ("credential:c", "tool:first", "tool:second")
    assert ready.level is Safety.DANGEROUS


def test_lookups_of_completions_and_pinned_operations_are_references_too() -> None:
    """Ours: no way to name a thing goes unseen (PRG-3)."""
    lookup = {
        "kind": "template",
        "text": "x",
        "completions": {"a/b": {"http": {"url": "https://a.example/{{ value }}"}}},
    }
    [found] = prepare(Family.PROMPT, _draft(prompt("p", lookup, arguments=[{"name": "a/b"}]))).references
    assert found == Request(pointer="/handler/completions/a~1b/http", origin="https://a.example", credential=None)
    pinned: dict[str, Any] = {"kind": "openapi", "source": "pets", "operation": "GET /pets", "arguments": {}}
    ready = prepare(Family.TOOL, _draft(tool("x", pinned, schema=OPEN)))
    assert list(ready.references) == [PinnedOperation(pointer="/handler", source="pets", operation="GET /pets")]
    assert (ready.refers, ready.level) == (("operation:pets:GET /pets",), Safety.SAFE)
