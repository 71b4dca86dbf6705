"""Attacks on unix sockets and hosts that a byte stream of the gateway may reach, by every spelling of an entry."""

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.domain.identifiers import TenantId
from gateway.errors import BrokenSetting, EgressDenied, UpstreamUnreachable
from gateway.upstream.client import UpstreamClient
from gateway.upstream.egress.allow_list import AllowEntry, read_entry, write_entry
from gateway.upstream.egress.guard import Guard
from tests.support.allow_lists import OneAllowList

ACME, GLOBEX = TenantId("ten_acme"), TenantId("ten_globex")
PUBLIC = "8.8.8.8"


class Names:
    """A name system with one name on loopback, and one that leads to the metadata service."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """The address of a name."""
        return ["169.254.169.254"] if host == "metadata.internal" else ["127.0.0.1"]

    def close(self) -> None:
        """Nothing to close."""


async def _greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"hello")
    writer.close()


@asynccontextmanager
async def listening(path: Path) -> AsyncGenerator[str]:
    """A program that greets at this socket; its address."""
    async with await asyncio.start_unix_server(_greet, str(path)):
        yield f"unix:{path}"


async def dial(upstream: UpstreamClient, address: str, tenant: TenantId = ACME) -> bytes:
    """Whatever is sent by what is at the address."""
    entry = read_entry(address)
    assert entry is not None
    reader, writer = await upstream.open_stream(entry, tenant=tenant)
    try:
        return await reader.read()
    finally:
        writer.close()


@asynccontextmanager
async def client(*entries: str, everyone: Sequence[str] = ()) -> AsyncGenerator[tuple[UpstreamClient, OneAllowList]]:
    """A client whose tenant acme has these entries."""
    lists = OneAllowList(ACME, *entries)
    async with UpstreamClient(egress_allow=everyone, lookup=Names()) as upstream:
        upstream.set_allow_lists(lists)
        yield upstream, lists


async def test_a_socket_is_reached_by_the_tenant_that_may_and_by_no_other(tmp_path: Path) -> None:
    """Ours: an entry of one tenant, or of the installation, opens one socket; withdrawn, it opens none (ISO-5)."""
    async with listening(tmp_path / "Editor.sock") as address, client(address) as (upstream, lists):
        assert await dial(upstream, address) == b"hello"
        with pytest.raises(EgressDenied):
            await dial(upstream, address, GLOBEX)
        lists.entries = ()
        with pytest.raises(EgressDenied):
            await dial(upstream, address)
        async with client(everyone=[address]) as (open_to_all, _):
            assert await dial(open_to_all, address, GLOBEX) == b"hello"


async def test_no_link_leads_to_another_socket(tmp_path: Path) -> None:
    """Ours: the dialled socket is the one at the allowed path, whatever the file system shows (ISO-5)."""
    (tmp_path / "real").mkdir()
    async with listening(tmp_path / "real" / "docker.sock"):
        (tmp_path / "link.sock").symlink_to(tmp_path / "real" / "docker.sock")
        (tmp_path / "folder").symlink_to(tmp_path / "real")
        (tmp_path / "plain").write_text("no socket")
        os.mkfifo(tmp_path / "pipe")
        for name in ("link.sock", "folder/docker.sock", "plain", "pipe", "real"):
            address = f"unix:{tmp_path / name}"
            async with client(address) as (upstream, _):
                with pytest.raises(EgressDenied):
                    await dial(upstream, address)


async def test_a_missing_socket_is_a_fault_of_the_upstream(tmp_path: Path) -> None:
    """Ours: a missing socket, and one that no program accepts at, are faults of the upstream."""
    async with listening(tmp_path / "left.sock") as left:
        pass
    for address in (left, f"unix:{tmp_path}/none.sock"):
        async with client(address) as (upstream, _):
            with pytest.raises(UpstreamUnreachable):
                await dial(upstream, address)


async def test_a_host_is_reached_where_an_entry_names_it(tmp_path: Path) -> None:
    """Ours: a byte stream needs an entry even for a public address; a name never leads to link-local ones (ISO-5)."""
    server = await asyncio.start_server(_greet, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, client(f"127.0.0.1:{port}", f"editor.internal:{port}", "metadata.internal:80") as (upstream, _):
        assert await dial(upstream, f"127.0.0.1:{port}") == b"hello"
        assert await dial(upstream, f"Editor.internal:{port}") == b"hello"
        for refused in (f"{PUBLIC}:6666", f"other.internal:{port}", f"127.0.0.1:{port - 1}", "metadata.internal:80"):
            with pytest.raises(EgressDenied):
                await dial(upstream, refused)


@pytest.mark.parametrize(
    "text",
    [
        "unix:",
        "unix:/",
        "unix:relative.sock",
        "unix://tmp/x",
        "unix:/tmp/../x",
        "unix:/tmp/./x",
        "unix:/tmp//x",
        "unix:/tmp/x/",
        "unix:/tmp/x\0y",
        "unix:/tmp/x\ny",
        "unix:/tmp/a,b",
        "unix:/" + "a" * 107,
        "unix:/" + "é" * 54,
        "UNIX:/tmp/x",
        "unix:/tmp/\ud800",
    ],
)
def test_a_path_has_one_spelling(text: str) -> None:
    """Ours: a path that could be read in two ways is no entry (ISO-5)."""
    assert read_entry(text) is None
    with pytest.raises(BrokenSetting):
        Guard([text])


@pytest.mark.parametrize("text", ["unix:/run/user/1000/nvim.sock", "unix:/tmp/Ä b.sock", "unix:/" + "a" * 106])
def test_a_path_reads_back(text: str) -> None:
    """Ours: writing and reading an entry are inverse, and a path permits no host (ISO-5)."""
    entry: AllowEntry | None = read_entry(f" {text} ")

    assert entry is not None
    assert write_entry(entry) == text
    assert not Guard([text]).may_dial("127.0.0.1", 0)
