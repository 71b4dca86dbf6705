"""Documents and archives that are made to cost: each ends in a clear refusal, and calls go on meanwhile."""

import base64
import contextlib
import json
import sys
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any

import anyio
import httpx
import pytest

from gateway.openapi.compiler import compile_document
from gateway.openapi.options import ImportOptions
from tests.support.archives import link_to, tar_of, tgz_of, zip_of, zipped_link
from tests.support.documents import pets
from tests.support.gateway import OPERATOR_KEY, RunningGateway, gateway_beside_upstream
from tests.support.openapi import operation, with_body
from tests.support.servers import TestServers

MIB = 1024 * 1024
_BETWEEN_S = 0.01
"""Between the calls that go on meanwhile: they are to be served, not to take the machine from what is watched."""


@dataclass(frozen=True, slots=True)
class Acme:
    """A gateway with one tenant that has tools, and a key to call them."""

    gateway: RunningGateway
    key: str

    async def call(self) -> None:
        """One call, which succeeds."""
        answer = await self.gateway.rpc("acme", self.key, "tools/call", {"name": "get_pet", "arguments": {"id": 1}})
        assert answer.status_code == 200, answer.text
        assert answer.json()["result"]["isError"] is False, answer.text

    async def post(self, body: bytes) -> httpx.Response:
        """An import, with calls all the while."""
        answered = anyio.Event()
        got: list[httpx.Response] = []

        async def send() -> None:
            headers = {"content-type": "application/json"}
            got.append(await self.gateway.admin.post("/tenants/acme/sources", content=body, headers=headers))
            answered.set()

        async with anyio.create_task_group() as group:
            group.start_soon(send)
            await self.call()
            while not answered.is_set():
                await self.call()
                with anyio.move_on_after(_BETWEEN_S):
                    await answered.wait()
        return got[0]


@pytest.fixture(scope="module")
async def acme(servers: TestServers) -> AsyncGenerator[Acme]:
    """For all tests; each leaves the tenant as it was."""
    async with gateway_beside_upstream(servers) as (gateway, upstream):
        await gateway.create_tenant("acme")
        plenty = {"limits": {"calls_per_second": 1_000_000, "burst": 1_000_000}}
        (await gateway.admin.patch("/tenants/acme/policy", json=plenty)).raise_for_status()
        await gateway.import_document("acme", pets(upstream.url), name="pets")
        yield Acme(gateway, await gateway.create_key("acme"))


def text(document: str) -> bytes:
    return json.dumps({"name": "bomb", "document": document, "base_url": "https://a.example"}).encode()


def archive(raw: bytes) -> bytes:
    return json.dumps({"name": "bomb", "archive": {"base64": base64.b64encode(raw).decode()}}).encode()


def laughs() -> str:
    lines = [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 30)]
    return "\n".join(["openapi: 3.1.0", "a0: &a0 [lol]", *lines])


BOMBS: dict[str, tuple[Callable[[], bytes], int]] = {
    "yaml aliases": (lambda: text(laughs()), 413),
    "yaml depth": (lambda: text("openapi: 3.1.0\nx: " + "[" * 100_000), 413),
    "yaml block depth": (lambda: text("- " * 100_000), 413),
    "yaml merge of itself": (lambda: text("openapi: 3.1.0\nx: &x\n  <<: *x"), 422),
    "yaml python object": (lambda: text("openapi: 3.1.0\nx: !!python/object/apply:os.system [id]"), 422),
    "json depth": (lambda: text('{"openapi":' + "[" * 100_000), 422),
    "json depth, closed": (lambda: text('{"openapi":' + "[" * 1_000 + "]" * 1_000 + "}"), 413),
    "width": (lambda: text('{"openapi":"3.1.0","x":[' + "{}," * 2_000_000 + "{}]}"), 413),
    "width as object": (lambda: b'{"name":"a","document":{"x":[' + b"{}," * 10_000_000 + b"{}]}}", 413),
    "width in yaml": (lambda: text("openapi: 3.1.0\nx: [" + "1," * 1_100_000 + "1]"), 413),
    "many operations": (
        lambda: text(json.dumps({"openapi": "3.1.0", "paths": {f"/{n}": {"get": {}} for n in range(6_000)}})),
        413,
    ),
    "beside the document": (lambda: json.dumps({"name": "a" * 2 * MIB, "document": "x"}).encode(), 413),
    "zip bomb": (lambda: archive(zip_of({"o.yaml": b"0" * 60 * MIB})), 413),
    "gzip bomb": (lambda: archive(tgz_of({"o.yaml": b"0" * 60 * MIB})), 413),
    "too many files": (lambda: archive(zip_of({f"{n}": b"" for n in range(10_001)})), 413),
    "tar that leads out": (lambda: archive(tar_of({"../../etc/cron.d/x": b""})), 422),
    "symlink in tar": (lambda: archive(tar_of({}, link_to("/etc/passwd"))), 422),
    "symlink in zip": (lambda: archive(zipped_link("/proc/self/environ")), 422),
    "bomb in an archive": (lambda: archive(tgz_of({"o.yaml": laughs().encode() + b"\npaths: {}"})), 422),
}


@pytest.mark.parametrize("name", BOMBS)
async def test_a_bomb_is_a_clear_refusal_and_calls_continue(acme: Acme, name: str) -> None:
    """Ours: an expensive document is refused within its limits, by size or form, and nothing is stored (TEN-5)."""
    make, status = BOMBS[name]

    answer = await acme.post(make())

    assert answer.status_code == status, answer.text
    assert answer.json()["code"] in {"document.too_large", "document.invalid"}
    assert len(answer.json()["detail"]) < 500
    sources = (await acme.gateway.admin.get("/tenants/acme/sources")).json()["items"]
    assert [source["name"] for source in sources] == ["pets"]
    await acme.call()


def doubling(levels: int) -> dict[str, Any]:
    schemas: dict[str, Any] = {
        f"s{n}": {"anyOf": [{"$ref": f"#/components/schemas/s{n + 1}"}] * 2} for n in range(levels)
    }
    schemas[f"s{levels}"] = {"type": "string"}
    return with_body({"$ref": "#/components/schemas/s0"}, components={"schemas": schemas})


def fans(make: Callable[[list[dict[str, str]]], dict[str, Any]], leaf: dict[str, Any]) -> dict[str, Any]:
    """Schemas of nine levels, each of which has the next level thirty times: 30^9 ways to the last one."""
    schemas = {f"s{n}": make([{"$ref": f"#/components/schemas/s{n + 1}"}] * 30) for n in range(9)}
    return {**schemas, "s9": {"type": "object", "properties": {"a": leaf}}}


FANS: dict[str, Callable[[list[dict[str, str]]], dict[str, Any]]] = {
    "allOf": lambda parts: {"allOf": parts},
    "anyOf": lambda parts: {"anyOf": parts},
    "closed": lambda parts: {"allOf": parts, "additionalProperties": False},
    "discriminator": lambda parts: {"oneOf": parts, "discriminator": {"propertyName": "a"}},
    "negated": lambda parts: {"not": parts[0], "if": {"allOf": parts}, "then": {"anyOf": parts}},
}


@pytest.mark.parametrize("name", FANS)
@pytest.mark.parametrize("place", ["json", "multipart", "response"])
def test_schemas_that_many_ways_lead_to_are_read_once(name: str, place: str) -> None:
    """Ours: the steps of an import grow with the document, not with the ways through its references (TEN-5)."""
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1
        if steps > 4_000_000:  # an assertion of pytest costs more than all that is counted
            raise OverflowError

    schema = {"$ref": "#/components/schemas/s0"}
    media = "multipart/form-data" if place == "multipart" else "application/json"
    content = {"content": {media: {"schema": schema}}}
    node = {"responses": {"200": {"description": "", **content}}} if place == "response" else {"requestBody": content}
    leaf = {"type": "string", "format": "binary"} if place == "multipart" else {"type": "string"}
    document = operation(node, method="post", components={"schemas": fans(FANS[name], leaf)})

    former = sys.getprofile()
    sys.setprofile(count)
    try:
        report = compile_document(document, ImportOptions(output_schemas=True)).report
    finally:
        sys.setprofile(former)

    assert len(report.operations) == 1


def mutual() -> dict[str, Any]:
    schemas = {
        "a": {"allOf": [{"$ref": "#/components/schemas/b"}], "properties": {"b": {"$ref": "#/components/schemas/b"}}},
        "b": {"anyOf": [{"$ref": "#/components/schemas/a"}, {"$ref": "#/components/schemas/b"}]},
        "c": {"$ref": "#/components/schemas/c"},
    }
    return with_body(
        {"oneOf": [{"$ref": f"#/components/schemas/{name}"} for name in schemas]}, components={"schemas": schemas}
    )


@pytest.mark.parametrize(
    "document",
    [
        doubling(30),
        mutual(),
        with_body({"type": "string", "pattern": "^(a+)+$", "description": "x" * 5 * MIB}),
        with_body({"enum": ["y" * 5 * MIB]}),
        with_body({"type": "string", "pattern": "a" * MIB}),
        {**with_body({}), "info": {"title": "t" * 5 * MIB, "version": "1"}},
    ],
    ids=["composition", "recursion", "description", "enum", "pattern", "title"],
)
async def test_a_schema_bomb_costs_at_most_its_operation(acme: Acme, document: dict[str, Any]) -> None:
    """Ours: 2^30 branches, references in circles and huge strings are loosened, cut or skipped (OAS-4, TEN-5)."""
    answer = await acme.post(json.dumps({"name": "bomb", "document": document}).encode())

    assert answer.status_code == 201, answer.text
    (fate,) = answer.json()["report"]["operations"]
    if fate["tool"] is not None:
        shown = await acme.gateway.admin.get(f"/tenants/acme/tools/{fate['tool']}")
        assert len(shown.content) < MIB
    assert len(answer.json()["status"]["title"]) <= 300
    await acme.call()
    (await acme.gateway.admin.delete("/tenants/acme/sources/bomb")).raise_for_status()


async def test_bombs_beside_each_other_leave_the_gateway_as_it_was(acme: Acme) -> None:
    """Ours: four bombs at once wait for each other, and calls for none of them (TEN-5)."""
    makes = [BOMBS[name][0] for name in ("yaml aliases", "width", "json depth", "zip bomb")]
    seen: list[int] = []

    async def send(body: bytes) -> None:
        seen.append((await acme.post(body)).status_code)

    async with anyio.create_task_group() as group:
        for make in makes:
            group.start_soon(send, make())

    assert sorted(seen) == [413, 413, 413, 422]


async def test_a_body_of_33_mib_is_cut_off_with_and_without_a_length(acme: Acme) -> None:
    """Ours: 413 once the limit is passed, with calls before and after (TEN-5)."""
    gateway = acme.gateway
    host = gateway.url.removeprefix("http://")
    head = (
        f"POST /admin/v1/tenants/acme/sources HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {OPERATOR_KEY}\r\n"
        "Content-Type: application/json\r\nConnection: close\r\n"
    )
    chunk = b"100000\r\n" + b" " * MIB + b"\r\n"
    for framing, parts in ((f"Content-Length: {33 * MIB}", []), ("Transfer-Encoding: chunked", [chunk] * 33)):
        received = b""
        with anyio.fail_after(60):
            async with await anyio.connect_tcp("127.0.0.1", int(host.rpartition(":")[2])) as connection:
                with contextlib.suppress(anyio.BrokenResourceError):
                    for part in (f"{head}{framing}\r\n\r\n".encode(), *parts):
                        await connection.send(part)
                with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                    while True:
                        received += await connection.receive()
        assert received.split(b" ", 2)[1] == b"413"
        assert b"document.too_large" in received
        await acme.call()
