"""Attacks on guards that nothing else would miss: each test here fails when one line of the gateway is taken out.

`make mutate-guards` takes the lines out.
"""

import asyncio
import hmac
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from urllib.parse import quote

import msgspec
import pytest

from gateway.definitions.json_schema.validator import compile_input
from gateway.domain.http.plans import Location, Style
from gateway.domain.http.requests import UpstreamRequest
from gateway.domain.identifiers import KeyId
from gateway.domain.tenancy.keys import Key, KeySecret, Scope, mint_key
from gateway.errors import ArgumentsInvalid, NotYetSupported, Unauthenticated, UpstreamAnswerTooLarge
from gateway.identity.authenticator import Authenticator
from gateway.identity.key_digests import KeyDigests
from gateway.store.database.connection import connect_app
from gateway.upstream.client import UpstreamClient
from tests.support.documents import secured
from tests.support.gateway import running_gateway
from tests.support.upstream import recording_upstream
from tests.unit.upstream.plans import parameter, plan, target

OPERATOR_KEY = "operator-key-of-the-tests-0123456789"


class _Stored:
    """Finds every id, or none."""

    def __init__(self, key: Key | None) -> None:
        self._key = key

    async def find(self, wanted: Collection[KeyId], *, hurried: bool = False) -> Mapping[KeyId, tuple[Key, str]]:
        return {} if self._key is None else dict.fromkeys(wanted, (self._key, "acme"))


async def test_an_unknown_key_costs_the_comparisons_of_a_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a wrong secret and an unknown id take the same steps, so that no timing shows which ids exist (TEN-2)."""
    minted, wrong = mint_key(), mint_key()
    key = msgspec.convert(
        {
            "tenant": "ten_a",
            "id": minted.id,
            "name": "k",
            "scopes": [Scope.MCP],
            "subject": "s",
            "profile": None,
            "secret": KeySecret(digest=b"\1" * 32),
            "created_at": "2026-01-01T00:00:00Z",
            "expires_at": None,
            "revoked_at": None,
            "version": 1,
        },
        Key,
        strict=False,
    )
    counts: list[int] = []
    compare = hmac.compare_digest

    def counting(left: bytes, right: bytes) -> bool:
        counts[-1] += 1
        return compare(left, right)

    monkeypatch.setattr("hmac.compare_digest", counting)
    for stored, text in ((key, minted.text), (None, wrong.text)):
        counts.append(0)
        credentials = Authenticator(
            _Stored(stored), digests=KeyDigests({"a": b"new", "b": b"old"}), operator_key=OPERATOR_KEY
        )
        with pytest.raises(Unauthenticated):
            await credentials.authenticate(f"Bearer {text}")

    assert counts == [5, 5]


async def test_a_credential_that_is_echoed_encoded_is_blanked(database_url: str, redis_url: str) -> None:
    """Ours: an upstream that echoes its query does not show the caller the stored credential (TEN-4)."""
    secret = "s3cr3t canary/&+%"
    async with (
        recording_upstream() as upstream,
        running_gateway(database_url, redis_url, egress_allow=[upstream.authority]) as gateway,
    ):
        await gateway.create_tenant("acme")
        document = secured(upstream.url)
        document["components"]["securitySchemes"]["token"]["in"] = "query"
        await gateway.import_document("acme", document, credentials={"token": secret})
        key = await gateway.create_key("acme")
        upstream.body = f'{{"asked": "?X-Token={quote(secret, safe="")}"}}'.encode()

        answer = await gateway.rpc("acme", key, "tools/call", {"name": "op_0000"})

    assert quote(secret, safe="") in upstream.seen[0].target
    assert quote(secret, safe="") not in answer.text
    assert answer.json()["result"]["structuredContent"] == {"asked": "?X-Token=***"}


@asynccontextmanager
async def _speaking(*parts: bytes) -> AsyncGenerator[str]:
    """An upstream that sends these bytes to every client, at this authority."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for part in parts:
            writer.write(part)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_an_answer_without_a_length_is_cut_at_the_limit() -> None:
    """Ours: a body in chunks is counted as it comes, however small its chunks (TEN-5)."""
    chunk = b"64\r\n" + b"x" * 100 + b"\r\n"
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with (
        _speaking(head, *[chunk] * 15, b"0\r\n\r\n") as authority,
        UpstreamClient(egress_allow=[authority], limit_bytes=1000) as upstream,
    ):
        with pytest.raises(UpstreamAnswerTooLarge):
            await upstream.send(UpstreamRequest(method="GET", url=f"http://{authority}/", idempotent=True))


@pytest.mark.parametrize("path", ["/u/.{0}", "/u/..{0}", "/u/%2e{0}"])
def test_a_value_that_completes_a_dot_segment_of_the_document_is_refused(path: str) -> None:
    """Ours: a harmless part may climb behind the document's own text, so the whole path is judged (TEN-5)."""
    made = plan(parameter(Location.PATH, "a", style=Style.MATRIX), path=path)

    with pytest.raises((ArgumentsInvalid, NotYetSupported)):
        target(made, a="x")


async def test_every_connection_of_the_app_has_deadlines(database_url: str) -> None:
    """Ours: no statement and no forgotten transaction holds a connection for ever (TEN-5)."""
    connection = await connect_app(database_url)
    try:
        for setting in ("statement_timeout", "idle_in_transaction_session_timeout"):
            assert await connection.fetchval("select setting::int from pg_settings where name = $1", setting) in range(
                1, 60_001
            )
    finally:
        await connection.close()


def _definition(schema: object) -> bytes:
    return msgspec.json.encode({"inputSchema": schema})


@pytest.mark.parametrize("pattern", [r"^(?=a+b)\w+$", r"(?<!x)y", r"(a)\1"])
def test_a_pattern_that_needs_backtracking_does_not_compile(pattern: str) -> None:
    """Ours: a pattern that cannot be matched in linear time is not matched at all (TEN-5)."""
    schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}}

    with pytest.raises(ValueError, match="pattern"):
        compile_input(_definition(schema))


async def test_a_schema_is_never_fetched() -> None:
    """Ours: a schema that refers to a URL opens no connection (OAS-7, TEN-5)."""
    dialled = asyncio.Event()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        dialled.set()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ntrue")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/schema.json"
        schema = {"type": "object", "properties": {"x": {"$ref": url}}}
        with pytest.raises(ValueError, match=r"(?i)external|offline|resolve|retriev"):
            await asyncio.to_thread(compile_input, _definition(schema))
    assert not dialled.is_set()
