"""Connector of the kind `neovim`: connects to the editor's RPC socket, and registers its channel with the plugin."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import cast

from gateway.domain.live_sources import LiveSource
from gateway.domain.refusals import LiveSourceFailed
from gateway.errors import UpstreamTimeout, UpstreamUnreachable
from gateway.upstream.client import UpstreamClient
from gateway.upstream.egress.allow_list import UNIX, AllowEntry, read_entry
from gateway.upstream.live.interfaces import LiveAttachment, LiveListener
from gateway.upstream.live.limits import DEFAULT_TIMEOUT_S
from gateway.upstream.live.neovim.attachment import CHUNK, CLIENT, NeovimAttachment, bounded
from gateway.upstream.live.neovim.limits import HANDSHAKE_S
from gateway.upstream.live.neovim.msgpack_rpc import MsgpackRpc, error_text

_TCP = "tcp:"
_PROTOCOL = 1


class NeovimConnector:
    """Attaches to editors at addresses that the operator allowed."""

    def __init__(self, upstream: UpstreamClient) -> None:
        self._upstream = upstream

    def attach(self, source: LiveSource, listener: LiveListener) -> AbstractAsyncContextManager[LiveAttachment]:
        """Connect to the editor. Without the plugin, the attachment has only a notice and no primitives.

        Raises:
            LiveSourceFailed: the connection failed, or the peer is not an editor.
            EgressDenied: the address is on no allow-list of the operator.
        """
        return self._attach(source, listener)

    @asynccontextmanager
    async def _attach(self, source: LiveSource, listener: LiveListener) -> AsyncGenerator[LiveAttachment]:
        entry = read_neovim_address(source.settings.get("address"))
        if entry is None:
            raise LiveSourceFailed("The address must be unix:/absolute/path or tcp:HOST:PORT.")
        try:
            stream = await self._upstream.open_stream(entry, tenant=source.tenant)
        except (UpstreamUnreachable, UpstreamTimeout) as error:
            raise LiveSourceFailed(f"The editor cannot be reached: {error.message}") from None
        attachment = NeovimAttachment(source, listener, timeout_s=_timeout_of(source))
        rpc = MsgpackRpc(stream, attachment.receive)
        reading = asyncio.get_running_loop().create_task(rpc.read(), name="read_neovim")

        async def check() -> None:
            await self._upstream.check_listed(entry, tenant=source.tenant)

        try:
            attachment.open(rpc, await _introduce(rpc), check)
            yield attachment
        finally:
            await attachment.detach()
            rpc.close("the gateway detached")
            reading.cancel()
            await asyncio.wait([reading])


def read_neovim_address(text: object) -> AllowEntry | None:
    """Parse an address to its allow-list entry; None unless it is `unix:/path` or `tcp:host:port`."""
    if not isinstance(text, str):
        return None
    if text.startswith(UNIX):
        return read_entry(text)
    entry = read_entry(text.removeprefix(_TCP)) if text.startswith(_TCP) else None
    return entry if entry is not None and entry[1] else None


def _timeout_of(source: LiveSource) -> float:
    given = source.settings.get("timeout_s", DEFAULT_TIMEOUT_S)
    return float(given) if isinstance(given, int | float) else DEFAULT_TIMEOUT_S


async def _introduce(rpc: MsgpackRpc) -> Mapping[bytes, object]:
    """Register the channel under a unique name for the plugin; return the editor's description.

    Raises:
        LiveSourceFailed: the peer did not respond in time, or is not an editor.
    """
    client = f"{CLIENT}{secrets.token_hex(8)}"
    try:
        async with asyncio.timeout(HANDSHAKE_S):
            await rpc.request("nvim_set_client_info", client, {}, "remote", {}, {})
            response = await rpc.request("nvim_exec_lua", CHUNK, ["attach", client])
    except TimeoutError:
        raise LiveSourceFailed(
            f"The editor did not respond within {HANDSHAKE_S:g} s; it may be waiting for a key, or running a command."
        ) from None
    if not isinstance(response, dict):
        raise LiveSourceFailed("The editor's plugin did not recognise the gateway's connection.")
    found = cast("Mapping[bytes, object]", response)
    if (fault := found.get(b"missing")) is not None:
        return {b"missing": error_text(fault)}
    if found.get(b"protocol") != _PROTOCOL or not isinstance(found.get(b"channel"), int):
        raise LiveSourceFailed(
            "The editor's plugin has another version than the gateway; install the matching version."
        )
    return {b"channel": found[b"channel"], b"title": bounded(found.get(b"title"))}
