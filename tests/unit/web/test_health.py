"""Responses of the probes."""

import math
from collections.abc import Awaitable, Callable, Mapping

import anyio
import httpx
import pytest
import structlog.testing
from starlette.applications import Starlette

from gateway.errors import DatabaseUnavailable
from gateway.web.health import Check, ReadinessProbe, health_routes


async def _good() -> None: ...


async def _away() -> None:
    raise DatabaseUnavailable("PostgreSQL does not respond")


async def _broken() -> None:
    raise RuntimeError("a secret detail")


async def _stuck() -> None:
    await anyio.sleep_forever()


async def _probe(path: str, *checks: Check, is_draining: bool = False, is_monitoring: bool = False) -> httpx.Response:
    probe = ReadinessProbe(checks)
    routes = health_routes(probe, is_draining=lambda: is_draining, sees_reasons=lambda _: is_monitoring)
    app = Starlette(routes=routes)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client:
        return await client.get(path)


async def test_a_replica_lives_independent_of_its_parts() -> None:
    """Ours: a lost database is no reason to restart the replica."""
    response = await _probe("/healthz", ("database", _away))

    assert (response.status_code, response.json()) == (200, {"status": "alive"})


async def test_a_replica_with_all_its_parts_is_ready() -> None:
    """Ours: ready means that a request would be served."""
    response = await _probe("/readyz", ("database", _good), ("redis", _good))

    assert (response.status_code, response.json()) == (200, {"status": "ready"})


async def test_every_failing_part_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: each failing part is listed with a reason without internal details; a stuck one counts as failing."""
    monkeypatch.setattr("gateway.web.health.CHECK_S", 0.05)

    checks = [("database", _away), ("good", _good), ("odd", _broken), ("redis", _stuck), ("audit", _stuck)]
    response = await _probe("/readyz", *checks, is_monitoring=True)

    assert response.status_code == 503
    assert response.headers["cache-control"] == "no-store"
    assert response.json() == {
        "status": "unready",
        "failing": [
            {"part": "database", "reason": "PostgreSQL does not respond"},
            {"part": "odd", "reason": "failed; see the log"},
            {"part": "redis", "reason": "no response within 0.05 seconds"},
            {"part": "audit", "reason": "no response within 0.05 seconds"},
        ],
    }


async def test_the_public_is_given_no_reasons() -> None:
    """Ours: the probe needs no credential, so it names no part of the installation (ISO-6)."""
    response = await _probe("/readyz", ("database", _away))

    assert (response.status_code, response.json()) == (503, {"status": "unready"})


async def test_a_failing_part_is_logged_when_it_changes() -> None:
    """Ours: the log has the reasons that the answer leaves out, once for each change."""
    state = [_away]

    async def check() -> None:
        await state[0]()

    readiness = ReadinessProbe([("database", check)])
    with structlog.testing.capture_logs() as lines:
        for present in (_away, _away, _good, _good):
            state[0] = present
            readiness.expire()
            await readiness.examine()

    assert [line["event"] for line in lines] == ["readiness_lost", "readiness_regained"]
    assert lines[0]["failing"] == [{"part": "database", "reason": "PostgreSQL does not respond"}]


async def test_a_replica_that_can_serve_without_a_part_is_degraded() -> None:
    """Ours: the outage of a shared server does not take every replica from a balancer; the log names what fails."""
    asked: list[Mapping[str, float]] = []

    def serves(failing: Mapping[str, float]) -> bool:
        asked.append(failing)
        return len(asked) < 3

    state = [_good]

    async def check() -> None:
        await state[0]()

    probe = ReadinessProbe([("database", check), ("redis", _away)], serves=serves)
    app = Starlette(routes=health_routes(probe, is_draining=lambda: False))
    answers: list[tuple[int, str]] = []
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client:
        with structlog.testing.capture_logs() as lines:
            for present in (_good, _away, _away):
                state[0] = present
                probe.expire()
                response = await client.get("/readyz")
                answers.append((response.status_code, response.json()["status"]))

    assert answers == [(200, "degraded"), (200, "degraded"), (503, "unready")]
    assert asked[0] == {"redis": math.inf}
    assert 0 < asked[1]["database"] < asked[2]["database"] < 60
    assert [line["event"] for line in lines] == ["readiness_degraded", "readiness_degraded", "readiness_lost"]


async def test_checks_run_side_by_side() -> None:
    """Ours: one part's check does not wait for another's."""
    first_began, second_began = anyio.Event(), anyio.Event()

    def after(own: anyio.Event, other: anyio.Event) -> Callable[[], Awaitable[None]]:
        async def check() -> None:
            own.set()
            await other.wait()

        return check

    response = await _probe("/readyz", ("a", after(first_began, second_began)), ("b", after(second_began, first_began)))

    assert response.status_code == 200


async def test_a_draining_replica_is_not_ready() -> None:
    """Ours: on SIGTERM readiness fails first, without a check (SRV-3)."""
    response = await _probe("/readyz", ("redis", _stuck), is_draining=True)

    assert (response.status_code, response.json()["status"]) == (503, "draining")


async def test_frequent_probes_run_few_checks() -> None:
    """Ours: the probes need no credential, so they must not be a way to load the database."""
    asked = 0

    async def count() -> None:
        nonlocal asked
        asked += 1

    app = Starlette(routes=health_routes(ReadinessProbe([("database", count)]), is_draining=lambda: False))
    async with (
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client,
        anyio.create_task_group() as tasks,
    ):
        for _ in range(20):
            tasks.start_soon(client.get, "/readyz")

    assert asked < 20
