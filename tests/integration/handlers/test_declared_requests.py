"""Handlers that send requests, against a real server on loopback: what goes out, what comes back, what stays inside."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import anyio
import msgspec
import pytest

from gateway.domain.http.plans import BodyKind, BodyPlan, Location, ParameterPlan, RequestPlan, Style
from gateway.domain.http.requests import Credential, NamedCredential
from gateway.domain.identifiers import OperationId, SourceId
from gateway.domain.primitives import Family
from gateway.domain.results import Completions
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.errors import EgressDenied, HandlerFailed, NotFound, UpstreamError
from gateway.handlers.interfaces import InputRequired
from gateway.handlers.python.context import Context
from gateway.upstream.client import UpstreamClient
from tests.integration.upstream.loopback import Exchange, Loopback, loopback
from tests.support.handler_bench import HandlerBench
from tests.support.peers import RoundsPeer, TalkingPeer, accepted
from tests.support.upstream import RecordingUpstream, recording_upstream


@dataclass(frozen=True, slots=True)
class Place:
    """A tenant, and the one API that it may reach."""

    house: HandlerBench
    api: RecordingUpstream

    def http(self, method: str = "GET", path: str = "/x", **more: object) -> dict[str, object]:
        """A request to the API, as it is declared."""
        return {"method": method, "url": f"{self.api.url}{path}", **more}

    def handler(self, method: str = "GET", path: str = "/x", **more: object) -> dict[str, object]:
        """A handler that is such a request."""
        return {"kind": "http", **self.http(method, path, **more)}


@pytest.fixture
async def place() -> AsyncGenerator[Place]:
    """A tenant without primitives and an API that answers `{"ok":true}`."""
    async with recording_upstream() as api, UpstreamClient(egress_allow=[api.authority]) as upstream:
        yield Place(HandlerBench(upstream), api)


def _code(result: Mapping[str, Any]) -> str:
    code: str = result["_meta"]["gateway/error"]["code"]
    return code


async def test_a_request_is_the_declared_one_with_its_places_filled(place: Place) -> None:
    """Ours: path and query are percent-encoded, bodies are built from trees, fixed headers go out."""
    place.house.has_tool(
        "orders",
        place.handler(
            "POST",
            "/pets/{{ id }}/orders?q={{ q }}",
            headers={"X-Kind": "k-{{ id }}"},
            body={"n": "{{ n }}", "said": "<{{ q }}>"},
        ),
    )

    result = await place.house.call("orders", {"id": "a/b c", "q": 'x&y="1"', "n": 3})

    [seen] = place.api.seen
    assert result["structuredContent"] == {"ok": True}
    assert (seen.method, seen.target) == ("POST", "/pets/a%2Fb%20c/orders?q=x%26y%3D%221%22")
    assert json.loads(seen.body) == {"n": 3, "said": '<x&y="1">'}
    assert (seen.header("x-kind"), seen.header("content-type")) == ("k-a/b c", "application/json")


async def test_a_text_body_goes_out_as_text(place: Place) -> None:
    """Ours: a body that is one text is not wrapped in quotes."""
    place.house.has_tool("says", place.handler("PUT", body="Hi {{ name }}"))

    await place.house.call("says", {"name": "Ann"})

    assert (place.api.seen[0].body, place.api.seen[0].header("content-type")) == (
        b"Hi Ann",
        "text/plain; charset=utf-8",
    )


@pytest.mark.parametrize("value", ["..", ".", "%2e%2e", "..;", "a\\b", "", "a%2Fb", "x\x00", "\ud800"])
async def test_a_value_that_would_name_another_path_is_refused(place: Place, value: str) -> None:
    """Ours: no argument leads a request elsewhere; nothing is sent (TEN-5)."""
    place.house.has_tool("reads", place.handler(path="/pets/{{ id }}/x"))

    result = await place.house.call("reads", {"id": value})

    assert result["isError"] is True
    assert place.api.seen == []


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "é", "\x00"])
async def test_a_value_that_no_header_can_hold_is_refused(place: Place, value: str) -> None:
    """Ours: no argument makes a second header (TEN-5)."""
    place.house.has_tool("reads", place.handler(headers={"X-Kind": "{{ kind }}"}))

    result = await place.house.call("reads", {"kind": value})

    assert result["isError"] is True
    assert place.api.seen == []


async def test_origins_that_the_tenant_does_not_allow_are_not_called(place: Place) -> None:
    """Ours: the allow-list of a tenant holds when the request is made, whatever was stored before (TEN-5)."""
    place.house.has_tool("reads", place.handler())
    place.house.has_tool("steps", {"kind": "steps", "steps": [{"http": place.http()}]})
    place.house.snapshot = replace(place.house.snapshot, http_origins=frozenset({"https://api.example.com"}))

    for name in ("reads", "steps"):
        assert _code(await place.house.call(name)) == EgressDenied.code
    assert place.api.seen == []

    place.house.snapshot = replace(place.house.snapshot, http_origins=frozenset({place.api.url.upper()}))
    assert (await place.house.call("reads"))["isError"] is False


async def test_addresses_that_the_operator_does_not_allow_are_not_called(place: Place) -> None:
    """Ours: declared requests leave through the one guarded door (TEN-5)."""
    place.house.has_tool("reads", {"kind": "http", "method": "GET", "url": "http://127.0.0.1:1/x"})

    assert _code(await place.house.call("reads")) == EgressDenied.code


def _credential(place: Place, secret: str, *origins: str, where: str = "bearer", field: str = "Authorization") -> None:
    place.house.secrets.held["api"] = NamedCredential(
        place=where, credential=Credential(value=secret, username="me"), origins=origins, field=field
    )


@pytest.mark.parametrize(
    ("where", "field", "header", "value"),
    [
        ("bearer", "Authorization", "authorization", "Bearer s3cret-token"),
        ("basic", "Authorization", "authorization", "Basic bWU6czNjcmV0LXRva2Vu"),
        ("header", "X-Key", "x-key", "s3cret-token"),
    ],
)
async def test_a_named_credential_goes_where_it_belongs_and_nothing_of_it_comes_back(
    place: Place, where: str, field: str, header: str, value: str
) -> None:
    """Ours: an upstream that echoes the secret, in any form, does not give it away (TEN-4)."""
    _credential(place, "s3cret-token", place.api.url, where=where, field=field)
    place.house.has_tool("reads", place.handler(credential="api"))
    place.api.body = json.dumps({"echo": value, "plain": "s3cret-token"}).encode()

    result = await place.house.call("reads")

    assert place.api.seen[0].header(header) == value
    assert "s3cret-token" not in str(result)
    assert value.removeprefix("Basic ").removeprefix("Bearer ") not in str(result)


async def test_a_credential_in_the_query(place: Place) -> None:
    """Ours: a key in the query is added last and is no argument of a caller (TEN-4)."""
    _credential(place, "s3cret token", place.api.url, where="query", field="key")
    place.house.has_tool("reads", place.handler(path="/x?key={{ key }}", credential="api"))

    await place.house.call("reads", {"key": "mine"})

    assert place.api.seen[0].target == "/x?key=s3cret%20token"


@pytest.mark.parametrize("origins", [(), ("https://api.example.com",), ("http://127.0.0.1:1",)])
async def test_a_credential_is_never_sent_to_another_origin(place: Place, origins: tuple[str, ...]) -> None:
    """Ours: a secret knows where it may go, and a handler cannot take it elsewhere (TEN-4)."""
    _credential(place, "s3cret-token", *origins)
    place.house.has_tool("reads", place.handler(credential="api"))

    assert _code(await place.house.call("reads")) == "upstream.credential_missing"
    assert place.api.seen == []


async def test_a_credential_that_is_not_stored_is_named(place: Place) -> None:
    """Ours: the error names what to store."""
    place.house.has_tool("reads", place.handler(credential="api"))

    assert "'api'" in (await place.house.call("reads"))["content"][0]["text"]


async def test_an_answer_is_cut_as_declared(place: Place) -> None:
    """Ours: pointer first, then what to keep, then what to drop; integers keep every digit."""
    place.api.body = b'{"items":[{"id":123456789012345678901,"name":"a","secret":"x"},{"id":2,"name":"b"}]}'
    place.house.has_tool(
        "lists",
        place.handler(result={"pointer": "/items", "keep": ["/*/id", "/*/secret"], "drop": ["/*/secret"]}),
    )

    result = await place.house.call("lists")

    assert result["structuredContent"] == [{"id": 123456789012345678901}, {"id": 2}]


async def test_an_answer_that_cannot_be_cut_is_a_clean_error(place: Place) -> None:
    """Ours: a missing value, and one that is not valid JSON, are reported (CAL-4)."""
    place.house.has_tool("points", place.handler(result={"pointer": "/items"}))

    assert _code(await place.house.call("points")) == HandlerFailed.code
    place.api.body = b"<html>"
    assert _code(await place.house.call("points")) == HandlerFailed.code


async def test_an_answer_without_a_body_is_not_cut(place: Place) -> None:
    """Ours: a successful request without a body is a success without content (CAL-1)."""
    place.api.status, place.api.body = 204, b""
    place.house.has_tool("removes", place.handler("DELETE", result={"pointer": "/items"}))

    done = await place.house.call("removes")
    assert done["content"] == [{"type": "text", "text": "HTTP 204 No Content"}]
    assert done["isError"] is False


async def test_json_behind_a_byte_order_mark_is_cut_too(place: Place) -> None:
    """Ours: some servers write one."""
    place.api.body = b'\xef\xbb\xbf{"items":[1]}'
    place.house.has_tool("points", place.handler(result={"pointer": "/items"}))

    assert (await place.house.call("points"))["structuredContent"] == [1]


async def test_a_refusal_of_the_upstream_is_an_error_result_and_not_cut(place: Place) -> None:
    """Ours: the model reads the status and the upstream's message."""
    place.api.status, place.api.body = 422, b'{"why":"no"}'
    place.house.has_tool("reads", place.handler(result={"pointer": "/items"}))

    result = await place.house.call("reads")

    assert result["isError"] is True
    assert "422" in result["content"][0]["text"]
    assert "no" in result["content"][0]["text"]


async def _never(exchange: Exchange) -> bool:
    await exchange.reader.read()
    return False


@asynccontextmanager
async def _hanging() -> AsyncGenerator[tuple[HandlerBench, Loopback]]:
    """A tenant whose tool `hangs` asks an API that never answers."""
    async with loopback(_never) as api, UpstreamClient(egress_allow=[api.authority]) as upstream:
        house = HandlerBench(upstream)
        url = f"http://{api.authority}/"
        house.has_tool("hangs", {"kind": "http", "method": "GET", "url": url, "timeout_s": 0.1})
        house.has_tool("hangs_long", {"kind": "http", "method": "GET", "url": url})
        yield house, api


async def test_a_request_that_takes_too_long_times_out() -> None:
    """Ours: the declared time limit ends the call (CAL-4)."""
    async with _hanging() as (house, _):
        with anyio.fail_after(30):
            assert _code(await house.call("hangs")) == "upstream.timeout"


async def test_a_cancelled_request_is_recorded_and_its_connection_closed() -> None:
    """Ours: a client that left is in the trail, and the upstream request ends (CAL-4, SAF-4)."""
    async with _hanging() as (house, api):
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                group.start_soon(house.call, "hangs_long")
                await api.arrived.wait()
                group.cancel_scope.cancel()
            await api.hung_up.wait()

        assert house.journal.lines == ["call hangs_long call cancelled"]


async def test_a_resource_has_the_type_of_the_upstream(place: Place) -> None:
    """Ours: text is text, bytes are a blob, each in its own type (RES-1)."""
    place.house.has_template("pet://{id}", place.handler(path="/pets/{{ id }}"))
    read = await place.house.read("pet://7")
    assert read.contents[0] == {"uri": "pet://7", "mimeType": "application/json", "text": '{"ok":true}'}

    place.api.content_type, place.api.body = "image/png", b"\x89P"
    assert (await place.house.read("pet://7")).contents[0]["blob"] == "iVA="
    place.api.content_type, place.api.body = "text/plain; charset=latin-1", "é".encode("latin-1")
    assert (await place.house.read("pet://7")).contents[0]["text"] == "é"
    assert [seen.target for seen in place.api.seen] == ["/pets/7"] * 3


@pytest.mark.parametrize("charset", ["punycode", "idna", "unicode_escape", "zip", "nothing"])
async def test_an_upstream_cannot_choose_a_slow_decoder(place: Place, charset: str) -> None:
    """Ours: codecs that are no charsets are not used, so a body is never read in time that grows with its square."""
    place.house.has_resource("pet://7", place.handler())
    place.house.has_prompt("asks", place.handler())
    steps = [{"http": place.http(), "as": "x"}, {"return": {"json": "{{ x }}"}}]
    place.house.has_tool("steps", {"kind": "steps", "steps": steps})
    place.api.content_type, place.api.body = f"text/plain; charset={charset}", b"a-9" * 3

    assert (await place.house.read("pet://7")).contents[0]["text"] == "a-9" * 3
    assert (await place.house.get("asks")).messages[0]["content"] == {"type": "text", "text": "a-9" * 3}
    assert (await place.house.call("steps"))["structuredContent"] == "a-9" * 3


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("json", {"mimeType": "text/x-pet", "text": '{"ok":true}'}),
        ("", {"mimeType": "text/x-pet", "text": '{"ok":true}'}),
        ("text/plain;\tcharset=utf-8", {"mimeType": "text/plain", "text": '{"ok":true}'}),
        ("application/yaml", {"mimeType": "application/yaml", "text": '{"ok":true}'}),
    ],
)
async def test_a_type_that_is_none_leaves_that_of_the_definition(
    place: Place, sent: str, read: Mapping[str, str]
) -> None:
    """Ours: an upstream that names no MIME type does not make its resource unreadable (RES-1)."""
    place.house.has_resource("pet://7", place.handler(), mimeType="text/x-pet")
    place.api.content_type = sent

    assert (await place.house.read("pet://7")).contents[0] == {"uri": "pet://7", **read}


@pytest.mark.parametrize(
    ("status", "error"), [(404, NotFound), (410, NotFound), (500, UpstreamError), (302, UpstreamError)]
)
async def test_a_resource_that_the_upstream_does_not_give(place: Place, status: int, error: type[Exception]) -> None:
    """Ours: an unknown outcome at the upstream is unknown here; every other failure is reported (CAL-3, CAL-4)."""
    place.house.has_template("pet://{id}", place.handler(path="/pets/{{ id }}"))
    place.api.status = status

    with pytest.raises(error):
        await place.house.read("pet://7")


@pytest.mark.parametrize("reported", [b'["x"]', b'[{"role":"user","content":"x"}]', b'[{"role":"system"}]', b"[null]"])
async def test_messages_of_a_wrong_shape_from_the_upstream(place: Place, reported: bytes) -> None:
    """Ours: a wrong shape is reported as one, and is no crash (CAL-4)."""
    place.house.has_prompt("asks", place.handler())
    place.api.body = b'{"messages":' + reported + b"}"

    with pytest.raises(HandlerFailed, match="the form that the protocol requires"):
        await place.house.get("asks")


async def test_a_prompt_from_the_upstream(place: Place) -> None:
    """Ours: messages where the answer has them, else its text as one message (PRM-2)."""
    place.house.has_prompt("greets", place.handler(path="/{{ name }}"), "name")
    message = {"role": "assistant", "content": {"type": "text", "text": "Hi"}}

    place.api.body = json.dumps({"messages": [message]}).encode()
    assert (await place.house.get("greets", {"name": "a"})).messages == (message,)
    place.api.content_type, place.api.body = "text/plain", b"hello"
    assert (await place.house.get("greets", {"name": "a"})).messages[0]["content"] == {"type": "text", "text": "hello"}
    place.api.content_type = "image/png"
    with pytest.raises(HandlerFailed):
        await place.house.get("greets", {"name": "a"})
    place.api.content_type, place.api.body = "application/json", b'{"messages":[{"role":"system"}]}'
    with pytest.raises(HandlerFailed):
        await place.house.get("greets", {"name": "a"})


async def test_steps_send_keep_and_stop_at_a_failure(place: Place) -> None:
    """Ours: later steps see the response of a request; a failure ends the list with the upstream's message."""
    place.house.has_tool(
        "works",
        {
            "kind": "steps",
            "steps": [
                {"http": place.http("POST", "/first"), "as": "first"},
                {"http": place.http("POST", "/second", body={"ok": "{{ first.ok }}"})},
                {"return": {"text": "ok: {{ first.ok }}"}},
            ],
        },
    )

    assert (await place.house.call("works"))["content"][0]["text"] == "ok: true"
    assert json.loads(place.api.seen[1].body) == {"ok": True}

    place.api.status = 503
    result = await place.house.call("works")
    assert (result["isError"], "503" in result["content"][0]["text"]) == (True, True)
    assert len(place.api.seen) == 3


async def test_a_request_before_a_question_is_sent_once(place: Place) -> None:
    """Ours: the round that brings the answer does not repeat what changed something (SAF-3)."""
    place.house.has_tool(
        "buys",
        {
            "kind": "steps",
            "steps": [
                {"http": place.http("POST", "/reserve"), "as": "reserved"},
                {"ask": {"message": "Sure?"}, "as": "sure"},
                {"http": place.http("POST", "/buy"), "as": "bought"},
                {"return": {"json": {"reserved": "{{ reserved.ok }}", "sure": "{{ sure.action }}"}}},
            ],
        },
    )
    peer = RoundsPeer()

    with pytest.raises(InputRequired):
        await place.house.call("buys", {}, peer)
    result = await place.house.call("buys", {}, peer.answered(sure=accepted()))

    assert result["structuredContent"] == {"reserved": True, "sure": "accept"}
    assert [seen.target for seen in place.api.seen] == ["/reserve", "/buy"]


async def test_completions_are_looked_up(place: Place) -> None:
    """MCP: typed and chosen values are in the request; the answer is a list of values (PRM-3)."""
    lookup = {
        "url": f"{place.api.url}/cities?q={{{{ value }}}}&land={{{{ arguments.land }}}}",
        "result": {"pointer": "/c"},
    }
    handler = {"kind": "template", "text": "{{ city }}", "completions": {"city": {"http": lookup}}}
    place.house.has_prompt("visits", handler, "city", "land")
    place.api.body = b'{"c":["Rome",7]}'

    found = await place.house.complete("visits", "city", "R&o", {"land": "it"})

    assert found == Completions(values=("Rome", "7"), total=2)
    assert place.api.seen[0].target == "/cities?q=R%26o&land=it"

    for body in (b'{"c":{}}', b'{"c":[null]}', b"[]"):
        place.api.body = body
        with pytest.raises(HandlerFailed):
            await place.house.complete("visits", "city", "")
    place.api.status = 500
    with pytest.raises(UpstreamError):
        await place.house.complete("visits", "city", "")


def _operation(place: Place) -> Tool:
    plan = RequestPlan(
        method="POST",
        origin=place.api.url,
        path="/pets/{0}",
        parameters=(
            ParameterPlan(
                argument="id", name="id", location=Location.PATH, style=Style.SIMPLE, explode=False, required=True
            ),
            ParameterPlan(argument="loud", name="loud", location=Location.QUERY, style=Style.FORM, explode=True),
        ),
        body=BodyPlan(kind=BodyKind.JSON, media_type="application/json"),
    )
    properties = {"id": {"type": "integer"}, "loud": {"type": "boolean"}, "body": {"type": "object"}}
    schema = {"type": "object", "properties": properties, "required": ["id"], "additionalProperties": False}
    return Tool(
        name="call_pet",
        definition=json.dumps({"name": "call_pet", "inputSchema": schema}).encode(),
        safety=Safety.MODERATE,
        safety_reasons=(),
        origin=PrimitiveOrigin.SOURCE,
        operation=OperationId("opr_1"),
        source=SourceId("src_1"),
        source_name="pets",
        plan=msgspec.json.encode(plan),
    )


async def test_an_operation_with_fixed_arguments(place: Place) -> None:
    """Ours: a fixed argument wins over the caller's, also by template; the rest is the caller's."""
    place.house.snapshot = replace(place.house.snapshot, operations={"pets": {"callPet": _operation(place)}})
    place.house.has_tool(
        "call_rex",
        {
            "kind": "openapi",
            "source": "pets",
            "operation": "callPet",
            "arguments": {"id": 7, "body": {"by": "{{ arguments.who }}"}},
        },
    )
    arguments = {"id": 9, "body": {"by": "me"}, "loud": True, "who": "Ann", "unknown": 1}

    result = await place.house.call("call_rex", arguments)

    assert result["structuredContent"] == {"ok": True}
    assert place.api.seen[0].target == "/pets/7?loud=true"
    assert json.loads(place.api.seen[0].body) == {"by": "Ann"}
    assert _code(await place.house.call("call_rex", {"loud": "very"})) == "call.arguments_invalid"
    assert len(place.api.seen) == 1


async def test_an_operation_behind_a_resource_and_a_prompt(place: Place) -> None:
    """Ours: an operation may be the handler of every family."""
    place.house.snapshot = replace(place.house.snapshot, operations={"pets": {"callPet": _operation(place)}})
    handler: dict[str, object] = {"kind": "openapi", "source": "pets", "operation": "callPet", "arguments": {"id": 7}}
    place.house.has_resource("pet://7", handler)
    place.house.has_prompt("calls", handler)

    assert (await place.house.read("pet://7")).contents[0]["text"] == '{"ok":true}'
    assert (await place.house.get("calls")).messages[0]["role"] == "user"


async def test_an_operation_that_is_gone_costs_its_own_calls(place: Place) -> None:
    """Ours: a source that was removed leaves a tool that reports it (CAL-4)."""
    place.house.has_tool("call_rex", {"kind": "openapi", "source": "pets", "operation": "callPet"})

    result = await place.house.call("call_rex")

    assert _code(result) == HandlerFailed.code
    assert "callPet" in result["content"][0]["text"]


async def test_code_sends_through_the_same_guard(place: Place) -> None:
    """Ours: the client that code is given is guarded, and encodes what it is given (PRG-1)."""

    async def sends(context: Context) -> Mapping[str, object]:
        got = await context.http.get(f"{place.api.url}/a b?q=é", headers={"X-A": "1"})
        posted = await context.http.post(f"{place.api.url}/p", json={"n": 1})
        return {"ok": got.json()["ok"], "status": posted.status, "text": posted.text, "error": posted.is_error}

    async def strays(context: Context) -> str:
        return (await context.http.get("http://127.0.0.1:1/")).text

    async def leaks(context: Context) -> str:
        return (await context.http.get("http://me:secret@127.0.0.1/")).text

    place.house.has_code(Family.TOOL, "sends", sends)
    place.house.has_code(Family.TOOL, "strays", strays)
    place.house.has_code(Family.TOOL, "leaks", leaks)

    result = await place.house.call("sends")

    assert result["structuredContent"] == {"ok": True, "status": 200, "text": '{"ok":true}', "error": False}
    assert [seen.target for seen in place.api.seen] == ["/a%20b?q=%C3%A9", "/p"]
    assert place.api.seen[1].header("content-type") == "application/json"
    for name in ("strays", "leaks"):
        assert _code(await place.house.call(name)) == EgressDenied.code


async def test_code_posts_once_though_it_runs_twice(place: Place) -> None:
    """Ours: a request of code that may change something is not repeated by a later round (SAF-3)."""

    async def orders(context: Context) -> str:
        seen = await context.http.get(f"{place.api.url}/stock")
        made = await context.http.post(f"{place.api.url}/orders")
        sure = await context.ask("Sure?")
        return f"{seen.status} {made.status} {made.text} {sure.action}"

    place.house.has_code(Family.TOOL, "orders", orders)
    peer = RoundsPeer()

    with pytest.raises(InputRequired) as asked:
        await place.house.call("orders", {}, peer)
    result = await place.house.call(
        "orders", {}, peer.answered(**{key: accepted() for key in asked.value.input_requests})
    )

    assert result["content"][0]["text"] == '200 200 {"ok":true} accept'
    assert [seen.target for seen in place.api.seen] == ["/stock", "/orders", "/stock"]


async def test_a_request_of_code_that_failed_is_not_sent_again_either(place: Place) -> None:
    """Ours: the effect of a request without a response is unknown, so no later round repeats it (SAF-3)."""
    reported: list[str] = []

    async def orders(context: Context) -> str:
        try:
            await context.http.post(f"{place.api.url}/orders")
        except UpstreamError as error:
            reported.append(error.message)
        return (await context.ask("Sure?")).action

    place.house.has_code(Family.TOOL, "orders", orders)
    place.api.body = b"x" * (11 * 1024 * 1024)
    peer = RoundsPeer()

    with pytest.raises(InputRequired) as asked:
        await place.house.call("orders", {}, peer)
    await place.house.call("orders", {}, peer.answered(**{key: accepted() for key in asked.value.input_requests}))

    assert len(place.api.seen) == 1
    assert len(reported) == 2


async def test_code_with_a_body_that_is_no_json_or_no_answer(place: Place) -> None:
    """Ours: both are clean errors of the handler (CAL-4)."""

    async def posts(context: Context) -> str:
        return (await context.http.post(place.api.url, json=object())).text

    async def parses(context: Context) -> Mapping[str, object]:
        return (await context.http.get(place.api.url)).json()  # type: ignore[no-any-return]  # whatever JSON it is

    place.house.has_code(Family.TOOL, "posts", posts)
    place.house.has_code(Family.TOOL, "parses", parses)
    place.api.body = b"<html>"

    assert _code(await place.house.call("posts")) == HandlerFailed.code
    assert _code(await place.house.call("parses")) == HandlerFailed.code


async def test_the_confirmed_request_is_the_sent_one(place: Place) -> None:
    """Ours: digest and summary are those of what is sent (SAF-3)."""
    place.house.has_tool("deletes", place.handler("DELETE", "/pets/{{ id }}"), safety=Safety.DANGEROUS)

    await place.house.call("deletes", {"id": 1}, TalkingPeer())
    await place.house.call("deletes", {"id": 2}, TalkingPeer())

    digests = [record.digest for record in place.house.journal.records]
    assert digests[0] == digests[1] != digests[2]
