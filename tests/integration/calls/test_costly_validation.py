"""Dear validations in real child processes: they end, they explain, and tenants share them."""

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

import gateway
from gateway.calls.arguments.costly_validation import CheckLimits, CostlyValidation
from gateway.calls.output_checks import ResultChecks
from gateway.definitions.json_schema.validator import DeferredCheck, Validator, compile_input, compile_output
from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import OutputInvalid
from gateway.errors import LimitExceeded, Unavailable

ACME, GLOBEX, INITECH = TenantId("ten_acme"), TenantId("ten_globex"), TenantId("ten_initech")
DEAR: dict[str, Any] = {
    "type": "object",
    "properties": {"x": {"items": {"anyOf": [*({"type": "string"} for _ in range(99)), {"type": "integer"}]}}},
    "required": ["x"],
}
SLEEPER = (sys.executable, "-c", "import time; time.sleep(60)")
EATER = (sys.executable, "-c", "import os; os.abort()")
_START = f"import sys; sys.path.insert(0, {str(Path(gateway.__file__).parents[1])!r});"
WORKER = (sys.executable, "-I", "-c", f"{_START} from gateway.definitions.json_schema.check_worker import main; main()")
"""The child process of this very tree, wherever the package is installed from."""
MISSING = (sys.executable, "-m", "gateway.no_such_module")


def _validator(schema: dict[str, Any]) -> Validator:
    return compile_input(json.dumps({"name": "t", "inputSchema": schema}).encode())


def _costly() -> DeferredCheck:
    validator = _validator({"type": "object"})
    validator.prepare()
    return DeferredCheck(validator=validator, instance=b"{}")


async def test_an_expensive_valid_value_is_accepted() -> None:
    """Ours: a large value is checked, if not on the event loop (ISO-2)."""
    validator, value = _validator(DEAR), {"x": [10**30, *range(20_000)]}

    assert isinstance(validator.check(value), DeferredCheck)
    assert await CostlyValidation().check(ACME, validator, value) == ()


async def test_expensive_checks_of_one_tenant_wait_and_share_a_warm_process() -> None:
    """Ours: a tenant with 24 dear checks at once waits for its turns; none is refused (ISO-2, ISO-3)."""
    checks, found = CostlyValidation(command=WORKER), list[object]()

    async def check(number: int) -> None:
        found.append(await checks.check(ACME, _validator(DEAR), {"x": [number, *range(20_000)]}))

    async with checks.processes, anyio.create_task_group() as group:
        for number in range(24):
            group.start_soon(check, number)
        await anyio.wait_all_tasks_blocked()
        assert (checks.slot_pool.busy, checks.slot_pool.waiting) == (1, 23)
    assert found == [()] * 24


@pytest.mark.usefixtures("real_workers")
async def test_an_expensive_invalid_value_is_refused_with_its_place() -> None:
    """Ours: the reason comes back from the child process with its place (CAL-2)."""
    faults = await CostlyValidation().check(ACME, _validator(DEAR), {"x": [*range(20_000), 1.5]})

    assert [fault.pointer for fault in faults] == ["/x"]
    assert "does not match its schema" in faults[0].reason


@pytest.mark.parametrize(
    ("command", "limits"),
    [
        (SLEEPER, CheckLimits(wall_s=0.2)),
        (EATER, None),
    ],
    ids=["time", "memory"],
)
async def test_a_check_that_takes_more_than_it_may_is_a_refusal(
    command: tuple[str, ...], limits: CheckLimits | None
) -> None:
    """Ours: a child process ends at its limits, and the error names them (ISO-2)."""
    with anyio.fail_after(60):
        faults = await CostlyValidation(command=command, limits=limits).finish(ACME, _costly())

    assert "more than the 2 seconds or the 128 MiB" in faults[0].reason


async def test_a_child_has_no_more_memory_than_it_may() -> None:
    """Ours: the limit holds in the real child process (ISO-2)."""
    value: dict[str, object] = {"x": [{} for _ in range(250_000)]}
    checks = CostlyValidation(command=WORKER, limits=CheckLimits(memory_bytes=40 * 2**20))
    faults = await checks.check(ACME, _validator(DEAR), value)

    assert "or the 40 MiB that one check may take" in faults[0].reason


async def test_a_child_has_no_more_time_than_it_may() -> None:
    """Ours: the limit of CPU time holds in the real child process (ISO-2)."""
    constants = [{"const": number + 0.5} for number in range(1_000)]
    schema = {"type": "object", "properties": {"x": {"items": {"oneOf": constants}}}}
    with anyio.fail_after(60):
        faults = await CostlyValidation(command=WORKER, limits=CheckLimits(cpu_s=1)).check(
            ACME, _validator(schema), {"x": [999.5] * 9_000}
        )

    assert "more than the 1 seconds" in faults[0].reason


async def test_a_check_that_does_not_start_is_no_verdict() -> None:
    """Ours: a fault of ours is not put down to the arguments."""
    with pytest.raises(Unavailable):
        await CostlyValidation(command=MISSING).finish(ACME, _costly())


async def test_a_tenant_holds_a_quarter_of_the_places_and_waits_in_a_bounded_line() -> None:
    """Ours: dear checks of one tenant leave places for all others (ISO-2, ISO-3)."""
    checks = CostlyValidation(command=SLEEPER, slot_pool=FairSlotPool("checks", slots=4, queue=8, timeout_s=60))
    usual = CostlyValidation().slot_pool
    assert (usual.share, usual.slots, usual.queue) == (1, 4, 256)
    async with anyio.create_task_group() as group:
        for tenant in (ACME, ACME, ACME, GLOBEX):
            group.start_soon(checks.finish, tenant, _costly())
            await anyio.wait_all_tasks_blocked()
        with pytest.raises(LimitExceeded, match="share of the checks of this replica") as caught:
            await checks.finish(ACME, _costly())
        assert caught.value.retry_after_s is not None
        group.start_soon(checks.finish, INITECH, _costly())  # there is a place, and no line before it
        await anyio.wait_all_tasks_blocked()
        assert checks.slot_pool.busy == 3
        group.cancel_scope.cancel()
    assert checks.slot_pool.busy == 0


async def test_a_result_of_many_parts_is_checked_without_being_read() -> None:
    """Ours: an answer of ten megabytes does not hold up the event loop (ISO-2)."""
    definition = json.dumps({"outputSchema": {"type": "object", "properties": {"x": {"items": {"type": "object"}}}}})
    output, results = compile_output(definition.encode()), ResultChecks(CostlyValidation())
    raw = b'{"x":[' + b"{}," * 300_000 + b"{}]}"

    assert isinstance(output.check_text(raw), DeferredCheck)
    await results.check_structured(ACME, output, raw)
    with pytest.raises(OutputInvalid, match="does not match") as caught:
        await results.check_structured(ACME, output, raw[:-2] + b",1]}")
    assert caught.value.faults[0].pointer == "/x"


async def test_an_unchecked_result_reports_that_the_tool_has_run() -> None:
    """Ours: a busy check after the call is no refusal of the call."""
    definition = json.dumps({"outputSchema": {"type": "object"}}).encode()
    results = ResultChecks(CostlyValidation(slot_pool=FairSlotPool("checks", slots=0, queue=0)))
    with pytest.raises(OutputInvalid, match="the tool has run"):
        await results.check_structured(ACME, compile_output(definition), b'{"x":[' + b"{}," * 60_000 + b"{}]}")
