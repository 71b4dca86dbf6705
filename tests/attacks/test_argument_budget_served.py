"""Calls that are made to cost, through the whole gateway: each ends in a clear result, and nothing else stops."""

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from tests.support.gateway import RunningGateway, gateway_beside_upstream
from tests.support.primitives import static_tool, tool
from tests.support.servers import TestServers
from tests.support.upstream import RecordingUpstream

COSTLY = {
    "type": "object",
    "properties": {},
    "patternProperties": {f"^k.*{n}$": {"type": "integer"} for n in range(200)},
}


@dataclass(frozen=True, slots=True)
class Evil:
    """A tenant that writes its own schemas, and a key to call its tools."""

    gateway: RunningGateway
    upstream: RecordingUpstream
    key: str

    async def add(self, name: str, schema: dict[str, Any]) -> None:
        """A tool with this input schema."""
        made = static_tool(name)
        made["definition"]["inputSchema"] = {"type": "object", "properties": {}, **schema}
        (await self.gateway.admin.post("/tenants/evil/tools", json=made)).raise_for_status()

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The result of one call."""
        answer = await self.gateway.rpc("evil", self.key, "tools/call", {"name": name, "arguments": arguments})
        assert answer.status_code == 200, answer.text
        result: dict[str, Any] = answer.json()["result"]
        return result


@pytest.fixture(scope="module")
async def evil(servers: TestServers) -> AsyncGenerator[Evil]:
    """The tenant on a gateway of this module."""
    async with gateway_beside_upstream(servers) as (gateway, upstream):
        await gateway.create_tenant("evil")
        limits = {"calls_per_second": 1_000, "burst": 1_000}
        (await gateway.admin.patch("/tenants/evil/policy", json={"limits": limits})).raise_for_status()
        yield Evil(gateway, upstream, await gateway.create_key("evil"))


def _unevaluated(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(depth):
        schema = {"allOf": [schema], "unevaluatedProperties": {"type": "integer"}}
    return schema


def _text(result: dict[str, Any]) -> str:
    text: str = result["content"][0]["text"]
    return text


async def test_a_large_call_without_sixty_arguments_names_them(evil: Evil) -> None:
    """Ours: the refusal of 0.65 MB takes no gigabyte; it still names the missing member (CAL-2, ISO-2)."""
    await evil.add("sixty", {"required": [f"r{number}" for number in range(60)]})
    result = await evil.call("sixty", {f"key-of-some-length-{number:08}": number for number in range(16_000)})

    assert result["isError"] is True
    assert '"r0" is a required property' in _text(result)


async def test_an_expensive_call_is_checked_beside_the_event_loop_and_made(evil: Evil) -> None:
    """Ours: a value that takes long to check is taken or refused by its schema, as a small one is (ISO-2)."""
    await evil.add("dear", COSTLY)
    names = {f"k{number}": number for number in range(19_000)}

    assert (await evil.call("dear", names))["isError"] is False
    refused = await evil.call("dear", {**names, "k1": "x"})
    assert refused["isError"] is True
    assert refused["_meta"]["gateway/error"]["code"] == "call.arguments_invalid"


async def test_many_calls_at_once_with_nested_choices_are_checked_on_the_event_loop(evil: Evil) -> None:
    """Ours: a valid body of 100 bytes that an estimate takes for endless is called, 24 times at once (ISO-2)."""
    choice = {
        "oneOf": [
            {
                "type": "object",
                "required": ["kind"],
                "properties": {"kind": {"const": kind}, "m0": {"$ref": "#/$defs/choice"}},
            }
            for kind in "abcdefghijklmnop"
        ]
    }
    await evil.add("choices", {"properties": {"c": {"$ref": "#/$defs/choice"}}, "$defs": {"choice": choice}})
    value: dict[str, Any] = {"kind": "p"}
    for _ in range(5):
        value = {"kind": "a", "m0": value}
    found = list[dict[str, Any]]()

    async def call() -> None:
        found.append(await evil.call("choices", {"c": value}))

    async with anyio.create_task_group() as group:
        for _ in range(24):
            group.start_soon(call)
    assert [result["isError"] for result in found] == [False] * 24


async def test_a_schema_that_multiplies_by_itself_refuses_the_smallest_call(evil: Evil) -> None:
    """Ours: a schema of one kilobyte cannot hold the event loop for a lifetime (ISO-2)."""
    await evil.add("nested", _unevaluated(26))
    result = await evil.call("nested", {"k": 1, "m": 2})

    assert result["isError"] is True
    assert "takes more than the 2 seconds" in _text(result)
    assert "send less in one call" in _text(result)


async def test_a_result_is_checked_by_an_expensive_schema_within_the_same_bounds(evil: Evil) -> None:
    """Ours: output schemas are a tenant's own, too (ISO-2, TDF-5)."""
    made = tool("answering", {"kind": "template", "json": {"k": 1, "m": 2}})
    made["definition"]["outputSchema"] = {"type": "object", **_unevaluated(26)}
    (await evil.gateway.admin.post("/tenants/evil/tools", json=made)).raise_for_status()
    result = await evil.call("answering", {})

    assert result["isError"] is True
    assert "takes more than the 2 seconds" in _text(result)


async def test_merged_arguments_are_checked_within_the_same_bounds(evil: Evil) -> None:
    """Ours: arguments that an own tool passes to an operation are checked by a child process where that is expensive
    (ISO-2, CAL-2).
    """
    schema = {
        "type": "object",
        "properties": {"x": {"items": {"anyOf": [{"type": "string"}] * 99 + [{"type": "integer"}]}}},
    }
    content = {"application/json": {"schema": schema}}
    node = {"operationId": "big", "requestBody": {"content": content}, "responses": {"200": {"description": "ok"}}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Big", "version": "1"},
        "servers": [{"url": evil.upstream.url}],
        "paths": {"/big": {"post": node}},
    }
    await evil.gateway.import_document("evil", document)
    made = tool(
        "merged", {"kind": "openapi", "source": "api", "operation": "big", "arguments": {"body": {"x": "{{ x }}"}}}
    )
    made["definition"]["inputSchema"] = {"type": "object", "properties": {"x": {}}}
    (await evil.gateway.admin.post("/tenants/evil/tools", json=made)).raise_for_status()

    good = await evil.call("merged", {"x": [1] * 19_000})
    bad = await evil.call("merged", {"x": [1] * 18_999 + [True]})

    assert good["isError"] is False, good
    assert "/body" in _text(bad)
    assert len(evil.upstream.seen) == 1


async def test_a_trial_of_an_expensive_call_has_the_same_bounds(evil: Evil) -> None:
    """Ours: the admin's trial is one more way to a check (ISO-2)."""
    await evil.add("tried", _unevaluated(26))
    answer = await evil.gateway.admin.post("/tenants/evil/tools/tried/try", json={"arguments": {"k": 1}})

    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == "/arguments"


@pytest.mark.parametrize("unit", [b"{},", b"[],", b'"",', b'{"a":1},'])
async def test_a_body_of_very_many_values_is_refused_before_it_is_read(evil: Evil, unit: bytes) -> None:
    """Ours: a megabyte of empty objects takes 200 ms to read, so it is counted first (ISO-2, CAL-5)."""
    head = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"x":['
    body = head + unit * (900_000 // len(unit)) + b"1]}}}"
    headers = {"authorization": f"Bearer {evil.key}", "content-type": "application/json", "accept": "application/json"}
    answer = await evil.gateway.http.post("/t/evil/mcp", content=body, headers=headers)

    assert answer.status_code == 413, answer.text
    assert "send less in one message" in json.loads(answer.content)["error"]["message"]


async def test_a_text_full_of_commas_and_braces_is_one_value(evil: Evil) -> None:
    """Ours: the content of a string is not counted as values."""
    await evil.add("texts", {"properties": {"x": {"type": "string"}}})

    assert (await evil.call("texts", {"x": '{[,"\\' * 100_000}))["isError"] is False
