"""The load generator against a small server, what a lock file installs, and what the command writes."""

import asyncio
from typing import Any

import pytest

from benchmarks import load
from benchmarks.figures import Table
from benchmarks.requests import get
from benchmarks.run import merge, render
from benchmarks.starts import installed


async def _against(answer: bytes, **order: Any) -> tuple[dict[str, Any], list[bytes]]:
    """Measurements of the load generator for a server that always answers the same, and the first lines it sent."""
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (head := await _head(reader)) is not None:
            seen.append(head.split(b"\r\n")[0])
            middle = len(answer) // 2  # in two pieces, as networks do
            writer.write(answer[:middle])
            await writer.drain()
            writer.write(answer[middle:])
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        return await load.run({"port": port, "calls": 1, "connections": 1, "seconds": 60, **order}), seen


async def _head(reader: asyncio.StreamReader) -> bytes | None:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def _raw(*paths: str) -> list[str]:
    return [get(path).decode("latin-1") for path in paths]


async def test_every_request_gets_its_turn() -> None:
    """Ours: calls of many tenants are shared out evenly, and whole turns are made."""
    seen, sent = await _against(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", requests=_raw("/a", "/b"), calls=3, connections=1
    )
    assert seen["calls"] == 4
    assert [line.split()[1] for line in sent] == [b"/a", b"/b", b"/a", b"/b"]
    assert 0 < seen["p50_ms"] <= seen["p99_ms"]


async def test_connections_start_at_different_requests() -> None:
    """Ours: many connections do not call the same tenant all at once."""
    _, sent = await _against(
        b"HTTP/1.1 202 Accepted\r\ncontent-length:0\r\n\r\n", requests=_raw("/a", "/b"), calls=2, connections=2
    )
    assert {line.split()[1] for line in sent[:2]} == {b"/a", b"/b"}


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 2\r\n\r\n{}",
        b'HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n{"isError":true}',
        b'HTTP/1.1 200 OK\r\ncontent-length: 24\r\n\r\n{"id":1,"error":{"a":1}}',
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
)
async def test_refused_calls_are_no_measurement(answer: bytes) -> None:
    """Ours: a figure is only of calls that did their work."""
    with pytest.raises(RuntimeError, match=r"not a success|without a length"):
        await _against(answer, requests=_raw("/a"))


def test_a_lock_installs_the_packages_of_its_markers() -> None:
    """Ours: packages for other systems are not counted."""
    lock = (
        "alpha==1.0 \\\n    --hash=sha256:00\n"
        "beta[extra]==2.0 ; sys_platform == 'nowhere' \\\n    --hash=sha256:00\n"
        "gamma==3.0 ; python_full_version >= '3.0' \\\n    --hash=sha256:00\n# comment==1\n"
    )
    assert installed(lock) == ["alpha", "gamma"]


def test_the_document_names_the_command_that_wrote_it() -> None:
    """Ours: a reader of a figure can reproduce it."""
    table = Table(title="Calls", columns=("target",), rows=(("x",),))
    text = render([table], ["2 cores"], "--write")

    assert "`python -m benchmarks.run --write`" in text
    assert text.index("2 cores") < text.index("## Calls")


def test_a_part_that_is_measured_alone_replaces_its_section_only() -> None:
    """Ours: the other tables of the document stay, and the section states that it was measured separately."""
    calls, lists, pages = [
        Table(title=title, columns=("target",), rows=((title.lower(),),)) for title in ("Calls", "Lists", "Pages")
    ]
    document = render([calls, lists], ["2 cores"], "--write")

    newer = Table(title="Calls", columns=("target",), rows=(("newer",),), notes=("a note",))
    merged = merge(document, [newer, pages], "--only calls,pages --write", 0.5)

    assert merged.count("\n## ") == document.count("\n## ") + 1
    assert merged.index("| newer |") < merged.index("| lists |") < merged.index("| pages |")
    assert "| calls |" not in merged
    assert merged.startswith(document[: document.index("## Calls")])
    assert merged.count("by `python -m benchmarks.run --only calls,pages --write`") == 2
