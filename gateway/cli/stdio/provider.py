"""`gateway provide`: the provider protocol on standard streams, one message per line, for programs without a WebSocket
client.
"""

from typing import Final

import anyio
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from gateway.app.python.limits import MAX_RECEIVED_BYTES, OPEN_S
from gateway.app.python.provider.link import GOING_AWAY, socket_url
from gateway.cli.client.locations import check_url
from gateway.cli.contexts.chosen import tenant_key
from gateway.cli.exit_codes import ExitCode, exit_for_status
from gateway.cli.failures import Failure
from gateway.cli.input.options import chosen_mcp_url
from gateway.cli.stdio.limits import MAX_PROVIDER_BYTES
from gateway.cli.stdio.remote_messages import one_line
from gateway.cli.stdio.running import run
from gateway.protocol.stdio.streams import ClaimedStreams, ClientGone, Oversized, StdioStreams

_TOO_BIG: Final = 1009
_NOT_TEXT: Final = 1007
_SERVER_ERROR: Final = 500
_EXIT_CODES: Final = {
    **dict.fromkeys((1000, 1001), ExitCode.OK),
    **dict.fromkeys((1002, 1003, 1007, 1009, 4400), ExitCode.FAILED),
    **dict.fromkeys((4409, 4410), ExitCode.CONFLICT),
    1012: ExitCode.BUSY,
    4401: ExitCode.DENIED,
    4404: ExitCode.NOT_FOUND,
}


def serve_provider(claimed: ClaimedStreams, url: str | None) -> None:
    """Forward messages in both directions until one side closes.

    Raises:
        Failure: the URL or the key cannot be used, or the gateway closed the connection.
    """
    target = _target(url)
    key = tenant_key(target.replace("ws", "http", 1))
    run(claimed, lambda streams: _connect(streams, target, key), limit=MAX_PROVIDER_BYTES)


def _target(url: str | None) -> str:
    try:
        return socket_url(check_url(url or ""))
    except (Failure, ValueError):
        return socket_url(chosen_mcp_url(url))  # the URL of the gateway, combined with --tenant


async def _connect(streams: StdioStreams, url: str, key: str) -> None:
    headers = {"authorization": f"Bearer {key}"}
    try:
        async with connect(  # not through a proxy of the environment, which could read the key
            url,
            additional_headers=headers,
            compression=None,
            max_size=MAX_RECEIVED_BYTES,
            open_timeout=OPEN_S,
            proxy=None,
        ) as socket:
            await _forward(streams, socket)
    except InvalidStatus as refused:
        status = refused.response.status_code
        exit_code = (
            ExitCode.BUSY if status >= _SERVER_ERROR else exit_for_status(status)
        )  # a proxy sends these while the gateway restarts
        raise Failure(f"the gateway refused the connection with HTTP {status}", exit_code) from None
    except (OSError, TimeoutError, InvalidHandshake) as error:
        reason = str(error) or type(error).__name__
        raise Failure(f"no connection to {url}: {reason}", ExitCode.UNREACHABLE) from None


async def _forward(streams: StdioStreams, socket: ClientConnection) -> None:
    code, reason = 0, "the connection was lost"
    async with anyio.create_task_group() as group:
        group.start_soon(_send_lines, streams, socket)
        try:
            while True:
                await streams.write(one_line((await socket.recv(decode=True)).encode()))
        except ConnectionClosed as closed:
            close = closed.rcvd or closed.sent
            if close is not None:
                code, reason = close.code, close.reason
        except ClientGone:
            code, reason = GOING_AWAY, ""
            await socket.close(GOING_AWAY)
        group.cancel_scope.cancel()
    status = _EXIT_CODES.get(code, ExitCode.UNREACHABLE)
    if status is not ExitCode.OK:
        raise Failure(f"closed {code} {reason}", status)


async def _send_lines(streams: StdioStreams, socket: ClientConnection) -> None:
    """Send each line as one message; at the end of standard input, close the connection."""
    try:
        async for line in streams.lines():
            if isinstance(line, Oversized):
                await socket.close(_TOO_BIG)
                return
            await socket.send(line.decode())
        await socket.close(GOING_AWAY)
    except UnicodeDecodeError:
        await socket.close(_NOT_TEXT)
    except ConnectionClosed:
        return  # `_forward` reports the close code
