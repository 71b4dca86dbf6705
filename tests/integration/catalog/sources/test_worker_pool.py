"""The processes that read documents: what they are given, what comes back, and how they end."""

import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest

from gateway.catalog.sources.worker_pool import WorkerLimits, WorkerPool
from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.identifiers import TenantId
from gateway.errors import DocumentTooLarge, LimitExceeded, Unavailable
from gateway.openapi.compiler import compile_document
from gateway.openapi.options import ImportOptions
from tests.support.documents import many, pets
from tests.support.specs import load_spec

pytestmark = pytest.mark.usefixtures("real_workers")
OPTIONS = ImportOptions(prefix="p", base_url="https://api.example.com", known_names={"GET /pets": "kept"})
REPORT_PROGRAM = """
import json, os, sys
from gateway.openapi.worker import answer, serve

def tell(task, document):
    facts = {"pid": os.getpid(), "group": os.getpgid(0), "environment": dict(os.environ), "folder": os.getcwd()}
    facts["files"] = [name for name in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + name)]
    open(sys.argv[1], "w").write(json.dumps(facts))
    yield from answer(task, document)

serve(sys.stdin.buffer, sys.stdout.buffer, tell)
"""
HANG = """
import os, subprocess, sys, time
pipe = os.open(sys.argv[1], os.O_WRONLY)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], pass_fds=[pipe])
os.write(pipe, f"{os.getpid()} {child.pid}\\n".encode())
time.sleep(1000)
"""


def script(text: str, *arguments: object) -> Sequence[str]:
    return (sys.executable, "-I", "-c", text, *map(str, arguments))


def is_alive(pid: int) -> bool:
    """True if the process exists, also as a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def written_pids(reader: int) -> tuple[int, int]:
    """The pids that the hanging process writes."""
    with anyio.fail_after(30):
        await anyio.wait_readable(reader)
    first, second = map(int, os.read(reader, 100).split())
    return first, second


async def wait_closed(reader: int) -> None:
    """Wait until nothing holds the other end any more: each process that was started has it open."""
    with anyio.fail_after(30):
        await anyio.wait_readable(reader)
    assert os.read(reader, 1) == b""


@pytest.mark.parametrize("document", [pets("https://pets.example"), many("https://a.example", 1000)])
async def test_a_process_returns_the_compilation_of_the_compiler(document: dict[str, Any]) -> None:
    """Ours: the result that comes through the pipe is the compilation itself (OAS-3)."""
    raw = orjson.dumps(document)

    compiled = await WorkerPool().compile(raw, OPTIONS)

    assert compiled.compilation == compile_document(raw, OPTIONS)
    assert compiled.document is None


async def test_a_large_compilation_comes_back_whole() -> None:
    """Ours: a real document, in many messages (OAS-3)."""
    raw = load_spec("slack-web-v2.json")

    assert (await WorkerPool().compile(raw, OPTIONS)).compilation == compile_document(raw, OPTIONS)


async def test_the_document_is_read_in_another_process_without_our_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a session of its own, no environment, no file but its three; and it is gone afterwards (TEN-5)."""
    monkeypatch.setenv("GATEWAY_SECRET_KEYS", "canary")
    notified = tmp_path / "told"

    await WorkerPool(command=script(REPORT_PROGRAM, notified)).compile(
        orjson.dumps(pets("https://a.example")), ImportOptions()
    )

    facts = json.loads(notified.read_text())
    assert facts["pid"] != os.getpid()
    assert facts["group"] == facts["pid"]
    assert set(facts["environment"]) <= {"LANG", "LC_CTYPE"}
    assert sorted(facts["files"]) == ["0", "1", "2"]
    assert facts["folder"] == "/"
    assert not is_alive(facts["pid"])


async def test_a_process_that_hangs_is_killed_with_all_it_started(tmp_path: Path) -> None:
    """Ours: the wall clock ends it, the refusal names the limit, and nothing is left running (TEN-5)."""
    fifo = tmp_path / "pids"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    workers = WorkerPool(command=script(HANG, fifo), limits=WorkerLimits(wall_s=3))
    try:
        with pytest.raises(DocumentTooLarge, match="3 seconds"):
            await workers.compile(b"{}" * 10_000_000, ImportOptions())
        hung, _ = await written_pids(reader)
        assert not is_alive(hung)
        await wait_closed(reader)
    finally:
        os.close(reader)


async def test_a_caller_that_goes_away_takes_the_process_along(tmp_path: Path) -> None:
    """Ours: cancelling an import kills its process, and the place is free again (TEN-5)."""
    fifo = tmp_path / "pids"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    workers = WorkerPool(command=script(HANG, fifo), slot_pool=FairSlotPool("workers", slots=1))
    try:
        hung: list[int] = []
        async with anyio.create_task_group() as group:
            group.start_soon(workers.compile, b"{}", ImportOptions())
            hung += await written_pids(reader)
            group.cancel_scope.cancel()
        assert not is_alive(hung[0])
        await wait_closed(reader)
    finally:
        os.close(reader)
    async with workers.slot_pool.hold(""):
        pass


async def test_memory_beyond_the_limit_is_a_refusal() -> None:
    """Ours: the process may use this much memory and no more, and the refusal states it (TEN-5)."""
    raw = b"[" + b"{}," * 10_000_000 + b"{}]"
    limits = WorkerLimits(memory_bytes=200 * 1024 * 1024)

    with pytest.raises(DocumentTooLarge, match="200 MiB"):
        await WorkerPool(limits=limits).compile(raw, ImportOptions())


@pytest.mark.parametrize(
    ("text", "kind", "states"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", DocumentTooLarge, "memory"),
        ("import sys; sys.exit(3)", Unavailable, "did not start"),
        ("import sys; sys.stdout.buffer.write(bytes([255] * 8))", Unavailable, "did not start"),
    ],
)
async def test_a_process_that_breaks_off_is_an_answer_all_the_same(
    text: str, kind: type[Exception], states: str
) -> None:
    """Ours: however the process ends, the caller gets an error, and the next one is served."""
    with pytest.raises(kind, match=states):
        await WorkerPool(command=script(text)).compile(b"{}" * 1_000_000, ImportOptions())


async def test_no_more_than_so_many_run_at_once(tmp_path: Path) -> None:
    """Ours: imports wait for each other, so that two take all there is to take (TEN-5)."""
    count = "import os, sys; os.write(os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND), b'+')\n"
    ends = "\nos.write(os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND), b'-')"
    notified = tmp_path / "told"
    notified.touch()
    workers = WorkerPool(
        command=script(f"{count}from gateway.openapi.worker import main; main(){ends}", notified),
        slot_pool=FairSlotPool("workers", slots=1, queue=16, timeout_s=60),
    )

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(workers.compile, orjson.dumps(pets("https://a.example")), ImportOptions())

    assert notified.read_text() == "+-" * 3


async def test_a_tenant_with_too_many_imports_gets_a_retry_hint(tmp_path: Path) -> None:
    """Ours: its queue is short and the refusal has a hint; another tenant still gets a place (TEN-5)."""
    fifo = tmp_path / "pids"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    workers = WorkerPool(command=script(HANG, fifo), slot_pool=FairSlotPool("workers", slots=1, queue=8))
    try:
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(partial(workers.compile, b"{}", ImportOptions(), tenant=TenantId("ten_a")))
            await written_pids(reader)
            with pytest.raises(LimitExceeded) as caught:
                await workers.compile(b"{}", ImportOptions(), tenant=TenantId("ten_a"))
            assert caught.value.retry_after_s is not None
            with anyio.move_on_after(0.05) as waited:
                await workers.compile(b"{}", ImportOptions(), tenant=TenantId("ten_b"))
            assert waited.cancelled_caught
            group.cancel_scope.cancel()
    finally:
        os.close(reader)
