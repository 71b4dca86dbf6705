"""Warm child processes: tenants of each child, and the ends of children."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from gateway.sandbox.warm_children import ChildEnded, WarmChildren
from tests.support.replicas import until

ECHO = """
import os, sys, time
from gateway.sandbox.frames import read_frame, write_frame

while (frame := read_frame(sys.stdin.buffer)) is not None:
    if frame == b"sleep":
        time.sleep(60)
    if frame == b"exit":
        sys.exit(5)
    if frame == b"kill":
        os.abort()
    pid = b"%d" % os.getpid()
    if frame == b"twice":
        os.write(1, 2 * (len(pid).to_bytes(4, "big") + pid))  # both frames arrive together
        continue
    write_frame(sys.stdout.buffer, pid)
    if frame == b"last":
        break
"""
COMMAND: Sequence[str] = (sys.executable, "-c", f"import sys; sys.path.insert(0, {str(Path.cwd())!r})\n{ECHO}")


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def _pid(processes: WarmChildren, owner: str, frame: bytes = b"who") -> int:
    with anyio.fail_after(60):
        return int(await processes.exchange(owner, frame))


async def test_a_process_serves_one_owner_and_is_reused_by_it_alone() -> None:
    """Ours: a warm process never serves two tenants; an idle one gives way to another tenant (ISO-1, ISO-2)."""
    async with WarmChildren(COMMAND, limit=2) as processes:
        acme = await _pid(processes, "acme")
        globex = await _pid(processes, "globex")
        again = await _pid(processes, "acme", b"x" * 2**20)
        initech = await _pid(processes, "initech")  # takes the place of the one that is idle the longest

        assert (acme, len({acme, globex, initech})) == (again, 3)
        assert (_is_alive(acme), _is_alive(globex), processes.idle) == (True, False, 2)
    assert not _is_alive(acme)
    assert not _is_alive(initech)


@pytest.mark.parametrize(("frame", "status"), [(b"exit", 5), (b"kill", -6)])
async def test_a_process_that_ends_at_its_request_is_reported_and_replaced(frame: bytes, status: int) -> None:
    """Ours: the end of a process is found by its status, and the next request gets another one (ISO-2)."""
    async with WarmChildren(COMMAND, limit=1) as processes:
        first = await _pid(processes, "acme")
        with pytest.raises(ChildEnded) as caught:
            await _pid(processes, "acme", frame)
        second = await _pid(processes, "acme")

    assert caught.value.status == status
    assert first != second


async def test_a_process_is_killed_after_anything_irregular() -> None:
    """Ours: a process with an unread byte, or without its response, serves no further request (ISO-1)."""
    async with WarmChildren(COMMAND, limit=1) as processes:
        late = await _pid(processes, "acme")
        with anyio.move_on_after(0.1):
            await processes.exchange("acme", b"sleep")
        assert not _is_alive(late)

        talkative = await _pid(processes, "acme", b"twice")
        assert await _pid(processes, "acme") != talkative
        assert not _is_alive(talkative)

        ended = await _pid(processes, "acme", b"last")
        assert await _pid(processes, "acme") != ended


async def test_an_idle_process_ends_by_itself() -> None:
    """Ours: a replica that checks nothing dear holds no process for it (ISO-2)."""
    async with WarmChildren(COMMAND, limit=1, idle_s=0.05) as processes:
        pid = await _pid(processes, "acme")
        await until(lambda: not _is_alive(pid))
        assert processes.idle == 0


async def test_without_an_open_block_no_process_is_kept() -> None:
    """Ours: a pipeline that was never opened leaves no process behind."""
    processes = WarmChildren(COMMAND, limit=1)
    pid = await _pid(processes, "acme")

    assert not _is_alive(pid)
