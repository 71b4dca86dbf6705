"""Large results of calls: each keeps its room until the call has a result, and no call waits for another for ever."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from gateway.domain.fairness.share import FairSlotPool
from gateway.errors import HandlerFailed
from gateway.upstream.client import UpstreamClient
from tests.integration.upstream.loopback import body, loopback, states
from tests.support.handler_bench import ACME, HandlerBench

VALUE = {"items": [{"id": number, "text": "x" * 50} for number in range(20_000)], "next": "abc"}
RAW = json.dumps(VALUE).encode()


@asynccontextmanager
async def handler_bench() -> AsyncGenerator[tuple[HandlerBench, FairSlotPool, str]]:
    """A tenant whose upstream always answers 1.5 MB, and the room; only one such body fits into the tenant's share."""
    answer = states(body(RAW, "Content-Type: application/json"))
    async with loopback(answer) as server, UpstreamClient(egress_allow=[server.authority]) as upstream:
        pool = upstream.room.slot_pool
        assert pool.try_take(ACME.tenant, pool.share - 2)
        yield HandlerBench(upstream), pool, f"http://{server.authority}/"


def _get(url: str, **result: object) -> dict[str, object]:
    return {"kind": "http", "method": "GET", "url": url, **({"result": result} if result else {})}


async def test_calls_with_several_bodies_do_not_wait_for_one_another() -> None:
    """Ours: a step and an inner call release the room of their body before the next one is read (ISO-3, CAL-4)."""
    async with handler_bench() as (house, pool, url):
        house.has_tool("big", _get(url))
        house.has_tool("part", _get(url, keep=["/next"]))
        get = {"request": {"method": "GET", "url": url, "result": {"keep": ["/next"]}}}
        steps: list[dict[str, Any]] = [
            {"http": get["request"], "as": "a"},
            {"call": {"tool": "part", "arguments": {}}, "as": "b"},
            {"http": get["request"], "as": "c"},
            {"return": {"json": {"a": "{{ a.next }}"}}},
        ]
        house.has_tool("steps", {"kind": "steps", "steps": steps})
        results: list[Any] = []

        async def call(name: str) -> None:
            results.append(await house.call(name))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for name in ("steps", "big", "part") * 3:
                    group.start_soon(call, name)
        assert len(results) == 9
        assert not any(result.get("isError") for result in results), results
        assert (pool.held(ACME.tenant), pool.waiting) == (pool.share - 2, 0)


@pytest.mark.parametrize("family", ["tool", "resource", "prompt"])
async def test_every_end_of_a_call_releases_its_room(family: str) -> None:
    """Ours: results, failures and cancellations leave nothing behind (ISO-3)."""
    async with handler_bench() as (house, pool, url):
        before = pool.busy
        for name, handler in (("whole", _get(url)), ("broken", _get(url, pointer="/missing"))):
            house.has_tool(name, handler)
            house.has_resource(f"x://{name}", handler, mimeType="application/json")
            house.has_prompt(name, handler)

        async def run(name: str) -> None:
            match family:
                case "tool":
                    await house.call(name)
                case "resource":
                    await house.read(f"x://{name}")
                case _:
                    await house.get(name)

        await run("whole")
        assert pool.busy == before
        with nullcontext() if family == "tool" else pytest.raises(HandlerFailed):
            await run("broken")
        assert pool.busy == before
        async with anyio.create_task_group() as group:
            group.start_soon(run, "whole")
            with anyio.fail_after(30):
                while pool.busy == before:  # the socket has no event
                    await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        assert (pool.busy, pool.waiting) == (before, 0)
