"""An upstream whose stream of events never ends, called through a real gateway."""

import pytest

from gateway.upstream.limits import MAX_EVENTS
from tests.behaviour.openapi.test_responses import ERAS, Mode
from tests.integration.upstream.loopback import Exchange, loopback
from tests.support.documents import many
from tests.support.gateway import running_gateway

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b"data: tick\n\n"


@pytest.mark.parametrize("mode", ERAS)
async def test_a_call_gets_the_events_of_an_endless_stream(database_url: str, redis_url: str, mode: Mode) -> None:
    """Ours: the events that came, as text, and a word that the stream went on; no timeout without them (CAL-1)."""

    async def flood(exchange: Exchange) -> bool:
        piece = EVENT * 500
        await exchange.write(HEAD)
        while True:
            await exchange.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")

    async with (
        loopback(flood) as upstream,
        running_gateway(database_url, redis_url, egress_allow=[upstream.authority]) as gateway,
    ):
        await gateway.create_tenant("acme")
        await gateway.import_document("acme", many(f"http://{upstream.authority}", 1))
        async with gateway.client("acme", await gateway.create_key("acme"), mode) as client:
            result = await client.call_tool("op_0000", {})

    assert result.is_error is False
    reported, note = [block.model_dump()["text"] for block in result.content]
    assert reported == (EVENT * MAX_EVENTS).decode()
    assert note == "This result is cut: the stream of events is cut after 10,000 events."
