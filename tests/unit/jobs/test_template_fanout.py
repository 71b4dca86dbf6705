"""Subscribers that are notified of a changed template: each URI once, and one pass at a time."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence

import anyio
from anyio.abc import TaskGroup

from gateway.domain.identifiers import TenantId
from gateway.errors import RedisUnavailable
from gateway.jobs.template_fanout import TemplateFanout

_A, _B = TenantId("ten_a"), TenantId("ten_b")
_PARTS = (("row://1", "note://1", "rows://1"), ("row://2", "row://1", "row://1/more"), ())


async def test_each_uri_of_a_template_is_notified_once() -> None:
    """Ours: for every subscriber, and for any number of templates (RES-5)."""
    notified: list[tuple[TenantId, str]] = []

    async def followed(_: TenantId) -> AsyncGenerator[Sequence[str]]:
        for part in _PARTS:
            yield part

    async def publish(tenant: TenantId, uri: str) -> None:
        notified.append((tenant, uri))

    async with anyio.create_task_group() as tasks:
        instances = TemplateFanout(followed, publish, spawn=tasks.start_soon)
        for template in ("row://{id}", "row://{other}", "no template {", "none://{id}"):
            instances.note(_A, template)

    assert notified == [(_A, "row://1"), (_A, "row://2")]


async def test_changes_during_a_pass_are_handled_after_it() -> None:
    """Ours: many changes are one look after another, each tenant's by itself (RES-5, TEN-5)."""
    looks: list[TenantId] = []
    notified: list[str] = []
    gate = anyio.Event()

    async def followed(tenant: TenantId) -> AsyncGenerator[Sequence[str]]:
        looks.append(tenant)
        if tenant == _A:
            await gate.wait()
        yield ("row://1",)

    async def publish(tenant: TenantId, uri: str) -> None:
        notified.append(f"{tenant} {uri}")
        if tenant == _B:  # while the other tenant's look is under way
            for _ in range(5):
                instances.note(_A, "row://{id}")
            gate.set()

    async with anyio.create_task_group() as tasks:
        instances = TemplateFanout(followed, publish, spawn=tasks.start_soon)
        for tenant in (_A, _B):
            instances.note(tenant, "row://{id}")

    assert sorted(looks) == [_A, _A, _B]
    assert sorted(notified) == ["ten_a row://1", "ten_a row://1", "ten_b row://1"]


async def test_after_a_fault_the_next_change_is_notified() -> None:
    """Ours: an update that could not be sent is lost like any event, and nothing more (SRV-4)."""
    faults = [RedisUnavailable("away"), None]
    notified: list[str] = []
    running: list[TaskGroup] = []

    def spawn(work: Callable[[TenantId], Coroutine[None, None, None]], tenant: TenantId) -> None:
        running[-1].start_soon(work, tenant)

    async def followed(_: TenantId) -> AsyncGenerator[Sequence[str]]:
        yield ("row://1",)

    async def publish(_: TenantId, uri: str) -> None:
        if (raised := faults.pop(0)) is not None:
            raise raised
        notified.append(uri)

    instances = TemplateFanout(followed, publish, spawn=spawn)
    for _ in range(2):
        async with anyio.create_task_group() as tasks:
            running.append(tasks)
            instances.note(_A, "row://{id}")

    assert notified == ["row://1"]
