"""Large results in child processes: the same answers as in a thread, and limits that end the process alone."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.calls.result_plan import PLAN, WHOLE_START
from gateway.calls.result_summary import Summaries
from gateway.definitions.handlers.specs import ResultSpec
from gateway.definitions.large_results.element_conditions import ElementCondition
from gateway.definitions.large_results.pages import PAGE, PageHead, PartRequest
from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.fairness.thread_kinds import LARGE_RESULTS
from gateway.domain.http.requests import UpstreamResponse
from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import ResultBusy
from gateway.errors import ArgumentsInvalid, HandlerFailed
from gateway.handlers.response_body.limits import MAX_THREAD_BYTES
from gateway.handlers.response_body.projection import project, select_fields
from gateway.handlers.response_body.projection_tasks import PROJECT, SELECT
from gateway.handlers.response_body.result_processes import ResultLimits, ResultProcesses
from gateway.sandbox.result_tasks import ResultTask

ACME, OTHER = TenantId("ten_acme"), TenantId("ten_other")
VALUE = {"items": [{"id": number, "big": 2**70 + number, "text": "é" * 40} for number in range(20_000)], "next": "abc"}
RAW = json.dumps(VALUE, ensure_ascii=False).encode()
WORKER = (
    sys.executable,
    "-c",
    f"import sys; sys.path.insert(0, {str(Path.cwd())!r}); from gateway.calls.result_worker import main; main()",
)
SLEEPER = (sys.executable, "-c", "import time; time.sleep(60)")
HEADS: list[tuple[ResultTask[Any, Any], Any, bytes]] = [
    (PROJECT, ResultSpec(pointer="/items", keep=("/*/big",), drop=("/7",)), RAW),
    (PROJECT, ResultSpec(pointer="/missing"), RAW),
    (PROJECT, ResultSpec(pointer="/items"), RAW[:-1]),
    (SELECT, ResultSpec(keep=("/items/7/id", "/none")), RAW),
    (SELECT, ResultSpec(keep=("/a",)), b'"' + b"x" * len(RAW) + b'"'),
    (PAGE, PageHead(PartRequest(pointer="/items", offset=19_990), 4096), RAW),
    (
        PAGE,
        PageHead(
            PartRequest(
                where=(ElementCondition(pointer="/id", equals=(7, "7", 2**70)),),
            ),
            4096,
        ),
        RAW,
    ),
    (PAGE, PageHead(PartRequest(pointer="/items/x"), 4096), RAW),
    (PAGE, PageHead(PartRequest(), 4096), b"\xff" * len(RAW)),
    (PLAN, 4096, WHOLE_START + RAW + b',"isError":false'),
    (PLAN, 4096, b'"content":[],"isError":true,"_meta":' + RAW),
]


def _local(task: ResultTask[Any, Any], head: Any, body: bytes) -> Any:
    try:
        return task.run(head, body)
    except (ArgumentsInvalid, HandlerFailed) as error:
        return type(error), error.message, error.faults


@pytest.mark.parametrize("number", range(len(HEADS)))
async def test_a_process_answers_as_a_thread_does(number: int) -> None:
    """Ours: numbers, texts and refusals are the same, wherever a result is read (OAS-10)."""
    task, head, body = HEADS[number]
    assert len(body) > MAX_THREAD_BYTES
    processes = ResultProcesses()
    try:
        with anyio.fail_after(60):
            answer = await processes.run(ACME, task, head, body)
    except (ArgumentsInvalid, HandlerFailed) as error:
        answer = type(error), error.message, error.faults

    assert answer == _local(task, head, body)
    assert LARGE_RESULTS.busy == 0


async def test_large_and_costly_bodies_are_read_in_processes_of_their_tenant() -> None:
    """ISO-2: a body of more than 1 MiB, or of very many values, becomes no object of the replica."""
    processes = ResultProcesses()
    small = UpstreamResponse(status=200, content_type="application/json", body=b'{"a":1,"b":2}')
    spec = ResultSpec(keep=("/a",))
    async with processes.processes:
        assert (await project(processes, ACME, small, spec)).body == b'{"a":1}'
        assert processes.processes.idle == 0
        many = UpstreamResponse(status=200, content_type="application/json", body=b'{"a":[' + b"{}," * 150_000 + b"1]}")
        assert len(many.body) < MAX_THREAD_BYTES
        with anyio.fail_after(60):
            assert (await project(processes, ACME, many, ResultSpec(keep=("/a/3",)))).body == b'{"a":[{}]}'
            assert processes.processes.idle == 1
            found, note = await select_fields(processes, OTHER, many, ("/a/3", "/c"))
        assert (found.body, note) == (b'{"a":[{}]}', "The result has nothing at '/c'.")
        assert processes.processes.idle == 2  # each tenant has a process of its own


@pytest.mark.parametrize(
    ("limits", "command"),
    [
        (ResultLimits(cpu_s=0.001), WORKER),
        (ResultLimits(memory_bytes=2**20), WORKER),
        (ResultLimits(wall_s=0.001), SLEEPER),
    ],
    ids=["time", "memory", "wall"],
)
async def test_a_process_beyond_its_limits_is_killed(limits: ResultLimits, command: Sequence[str]) -> None:
    """ISO-2: a result that takes too much ends its process; the caller reads why, and gets what can be returned."""
    processes = ResultProcesses(limits=limits, command=command)
    response = UpstreamResponse(status=200, content_type="application/json", body=RAW)
    with anyio.fail_after(120):
        with pytest.raises(HandlerFailed, match="the result is too large: reading it takes more than"):
            await project(processes, ACME, response, ResultSpec(keep=("/next",)))
        kept, note = await select_fields(processes, ACME, response, ("/next",))
        assert (kept, note is not None and note.startswith("_fields had no effect: the result is too large")) == (
            response,
            True,
        )
        members = await Summaries(processes, limit=1000).summarise(
            ACME, WHOLE_START + RAW + b',"isError":false', 4096, _keep_nothing
        )
    texts = [block["text"] for block in json.loads(b"{" + members + b"}")["content"]]
    assert len(texts[0]) <= 1000
    assert json.loads(texts[0])["items"][0] == VALUE["items"][0]
    assert texts[-1].startswith("No summary: the result is too large")
    assert processes.slot_pool.busy == 0


async def test_a_process_that_does_not_start_is_a_failed_call() -> None:
    """Ours: an exit without a response is a failure with a reason (CAL-4)."""
    processes = ResultProcesses(command=(sys.executable, "-c", "raise SystemExit(7)"))
    with anyio.fail_after(60), pytest.raises(HandlerFailed, match="the process that reads the result failed"):
        await processes.run(ACME, PROJECT, ResultSpec(), RAW)


async def test_a_tenant_has_one_process_at_a_time_and_waits_in_turn() -> None:
    """ISO-3: another tenant's result is read meanwhile; beyond the queue the call states that it has run."""
    slots = FairSlotPool("processes for large results", slots=2, queue=4, timeout_s=60)
    processes = ResultProcesses(slot_pool=slots)
    async with slots.hold(ACME), anyio.create_task_group() as group:
        group.start_soon(processes.run, ACME, PROJECT, ResultSpec(), RAW)
        await anyio.wait_all_tasks_blocked()
        assert (slots.held(ACME), slots.waiting) == (1, 1)
        with pytest.raises(ResultBusy, match=r"its share of the processes for large results.*\(1 of 2\)"):
            await processes.run(ACME, PROJECT, ResultSpec(), RAW)
        with anyio.fail_after(60):
            assert await processes.run(OTHER, PROJECT, ResultSpec(pointer="/next"), RAW) == b'"abc"'
        group.cancel_scope.cancel()
    assert (slots.busy, slots.waiting) == (0, 0)


async def _keep_nothing(content_type: str, body: bytes) -> str | None:
    del content_type, body
    return None
