"""Every kind of handler, declared over REST at one replica and used by clients of both eras at both replicas."""

import json
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    BlobResourceContents,
    CallToolResult,
    PromptReference,
    ResourceTemplateReference,
    TextContent,
    TextResourceContents,
)

from tests.behaviour.primitives.conftest import Tenant
from tests.support.documents import pets
from tests.support.primitives import NAMED, prompt, resource, static_tool, template, text_prompt, text_resource, tool
from tests.support.replicas import Mode

ERAS: tuple[Mode, ...] = ("legacy", "2026-07-28")
era = pytest.mark.parametrize("era", ERAS)


def _text(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


async def _read(client: Client, uri: str) -> Any:
    (content,) = (await client.read_resource(uri)).contents
    assert str(content.uri) == uri
    return content


async def _reported(client: Client, name: str, arguments: dict[str, str] | None = None) -> str:
    (message,) = (await client.get_prompt(name, arguments)).messages
    assert isinstance(message.content, TextContent)
    return message.content.text


@era
async def test_tools_of_every_kind_are_listed_and_called(tenant: Tenant, era: Mode) -> None:
    """Ours: static, template, http, steps and openapi tools are tools like any other (PRG-3, CAL-1)."""
    await tenant.replicas.a.gateway.import_document(tenant.slug, pets(tenant.upstream.url))
    url = f"{tenant.upstream.url}/greetings/{{{{ name }}}}"
    pinned = {"kind": "openapi", "source": "api", "operation": "get_pet", "arguments": {"id": 7}}
    steps = [{"call": {"tool": "say"}, "as": "said"}, {"return": {"text": "{{ said.content[0].text }}, {{ name }}"}}]
    await tenant.add("tools", static_tool("say", "hello"))
    await tenant.add("tools", tool("fill", {"kind": "template", "text": "Hello {{ name }}"}, schema=NAMED))
    await tenant.add("tools", tool("shape", {"kind": "template", "json": {"hi": "{{ name }}"}}, schema=NAMED))
    await tenant.add("tools", tool("fetch", {"kind": "http", "method": "GET", "url": url}, schema=NAMED))
    await tenant.add("tools", tool("walk", {"kind": "steps", "steps": steps}, schema=NAMED))
    await tenant.add("tools", tool("pet_seven", pinned))
    tenant.upstream.body = b'{"greeting":"hi","n":12345678901234567890}'

    async with tenant.replicas.client(tenant.slug, tenant.key, era) as client:
        listed = {each.name: each for each in (await client.list_tools()).tools}
        assert {"say", "fill", "shape", "fetch", "walk", "pet_seven"} <= listed.keys()
        assert listed["fill"].input_schema == {name: NAMED[name] for name in NAMED if name != "additionalProperties"}
        for _ in range(2):  # once at each replica
            assert _text(await client.call_tool("say")) == "hello"
            assert _text(await client.call_tool("fill", {"name": "Ünï"})) == "Hello Ünï"
            assert (await client.call_tool("shape", {"name": "Bo"})).structured_content == {"hi": "Bo"}
            fetched = await client.call_tool("fetch", {"name": "a b/c"})
            assert json.loads(_text(fetched)) == {"greeting": "hi", "n": 12345678901234567890}
            assert _text(await client.call_tool("walk", {"name": "Bo"})) == "hello, Bo"
            assert not (await client.call_tool("pet_seven")).is_error

    assert {seen.target for seen in tenant.upstream.seen} == {"/greetings/a%20b%2Fc", "/v1/pets/7"}


@era
async def test_resources_of_every_kind_are_listed_and_read(tenant: Tenant, era: Mode) -> None:
    """Ours: text and blob, fixed, filled and fetched resources, and templates of them (RES-1, RES-2, PRG-3)."""
    fetched = {"kind": "http", "method": "GET", "url": f"{tenant.upstream.url}/rows/{{{{ id }}}}"}
    blob = {"kind": "static", "contents": [{"uri": "docs://logo", "mimeType": "image/png", "blob": "iVBORw=="}]}
    annotations = {"audience": ["user"], "priority": 0.5}
    await tenant.add("resources", text_resource("docs://readme", "Read me."))
    await tenant.add("resources", resource("docs://logo", blob, mimeType="image/png", size=4, annotations=annotations))
    await tenant.add("resource-templates", template("db://rows/{id}", fetched, mimeType="application/json"))
    notes = template("notes://{name}", {"kind": "template", "text": "Note {{ name }}"}, mimeType="text/plain")
    await tenant.add("resource-templates", notes)
    tenant.upstream.body = b'{"id":7}'

    async with tenant.replicas.client(tenant.slug, tenant.key, era) as client:
        listed = {str(each.uri): each for each in (await client.list_resources()).resources}
        templates = {each.uri_template for each in (await client.list_resource_templates()).resource_templates}
        assert {"docs://readme", "docs://logo"} <= listed.keys()
        assert {"db://rows/{id}", "notes://{name}"} <= templates
        assert (listed["docs://logo"].size, listed["docs://logo"].mime_type) == (4, "image/png")
        for _ in range(2):
            readme, logo = await _read(client, "docs://readme"), await _read(client, "docs://logo")
            row, note = await _read(client, "db://rows/a%20b"), await _read(client, "notes://x%2Fy")
            assert isinstance(readme, TextResourceContents)
            assert (readme.text, readme.mime_type) == ("Read me.", "text/plain")
            assert isinstance(logo, BlobResourceContents)
            assert (logo.blob, logo.mime_type) == ("iVBORw==", "image/png")
            assert (json.loads(row.text), row.mime_type) == ({"id": 7}, "application/json")
            assert note.text == "Note x/y"

    assert {seen.target for seen in tenant.upstream.seen} == {"/rows/a%20b"}


@era
async def test_a_missing_upstream_object_is_an_unknown_resource(tenant: Tenant, era: Mode) -> None:
    """Ours: a template's URI that names nothing at the upstream is the protocol's unknown resource (RES-2, CAL-3)."""
    fetched = {"kind": "http", "method": "GET", "url": f"{tenant.upstream.url}/rows/{{{{ id }}}}"}
    await tenant.add("resource-templates", template("db://rows/{id}", fetched, mimeType="application/json"))
    tenant.upstream.status = 404

    async with tenant.replicas.client(tenant.slug, tenant.key, era) as client:
        with pytest.raises(MCPError) as missing:
            await client.read_resource("db://rows/8")

    reported = missing.value.error
    assert reported.code == (-32002 if era == "legacy" else -32602)
    assert reported.data["uri"] == "db://rows/8"


@era
async def test_prompts_of_every_kind_are_listed_and_got(tenant: Tenant, era: Mode) -> None:
    """Ours: several messages, both roles, every kind of content, arguments filled in (PRM-1, PRM-2, PRG-3)."""
    messages = [
        {"role": "user", "content": {"type": "text", "text": "Review {{ code }}"}},
        {"role": "assistant", "content": {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}},
        {"role": "user", "content": {"type": "resource", "resource": {"uri": "docs://style"}}},
    ]
    arguments = [{"name": "code", "required": True}, {"name": "tone"}]
    await tenant.add("resources", text_resource("docs://style", "Be kind."))
    await tenant.add("prompts", text_prompt("greet", "Say hello."))
    await tenant.add("prompts", prompt("review", {"kind": "template", "messages": messages}, arguments=arguments))

    async with tenant.replicas.client(tenant.slug, tenant.key, era) as client:
        listed = {each.name: each for each in (await client.list_prompts()).prompts}
        assert {"greet", "review"} <= listed.keys()
        assert [each.required for each in listed["review"].arguments or ()] == [True, None]
        for _ in range(2):
            assert await _reported(client, "greet") == "Say hello."
            got = (await client.get_prompt("review", {"code": "x = 1"})).model_dump(mode="json", by_alias=True)
            assert [message["role"] for message in got["messages"]] == ["user", "assistant", "user"]
            assert got["messages"][0]["content"]["text"] == "Review x = 1"
            assert got["messages"][1]["content"]["data"] == "iVBORw=="
            assert got["messages"][2]["content"]["resource"]["text"] == "Be kind."


@era
async def test_arguments_and_variables_are_completed(tenant: Tenant, era: Mode) -> None:
    """Ours: from a list by prefix, and from a declared lookup that sees what was chosen before (PRM-3, RES-2)."""
    lookup = {
        "url": f"{tenant.upstream.url}/names?q={{{{ value }}}}&lang={{{{ arguments.lang }}}}",
        "result": {"pointer": "/names"},
    }
    handler = {
        "kind": "template",
        "text": "{{ lang }} {{ name }}",
        "completions": {"lang": {"values": ["python", "perl", "rust"]}, "name": {"http": lookup}},
    }
    rows = {"kind": "template", "text": "{{ id }}", "completions": {"id": {"values": ["a1", "a2", "b1"]}}}
    arguments = [{"name": "lang"}, {"name": "name"}]
    await tenant.add("prompts", prompt("write", handler, arguments=arguments))
    await tenant.add("resource-templates", template("db://rows/{id}", rows, mimeType="text/plain"))
    tenant.upstream.body = b'{"names":["nina","nora"]}'

    async with tenant.replicas.client(tenant.slug, tenant.key, era) as client:
        write, rows_of = PromptReference(name="write"), ResourceTemplateReference(uri="db://rows/{id}")
        listed = await client.complete(write, {"name": "lang", "value": "p"})
        looked_up = await client.complete(write, {"name": "name", "value": "n"}, {"lang": "rust"})
        of_template = await client.complete(rows_of, {"name": "id", "value": "a"})

    assert listed.completion.values == ["python", "perl"]
    assert looked_up.completion.values == ["nina", "nora"]
    assert of_template.completion.values == ["a1", "a2"]
    assert [seen.target for seen in tenant.upstream.seen] == ["/names?q=n&lang=rust"]
