"""The notice that a replica gives before it ends: not ready any more, and still at your service."""

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import httpx
import pytest

from tests.deploy.topology import Replica, make_secrets, replica_environment
from tests.support.replicas import until
from tests.support.servers import TestServers
from tests.support.serving import http_client

NOTICE_S = 3
PATIENCE_S = 30


@pytest.fixture
async def replica(servers: TestServers, tmp_path: Path) -> AsyncGenerator[Replica]:
    """One replica as Compose starts it, with a notice of a few seconds."""
    with servers.database() as database:
        secrets = make_secrets(tmp_path / "secrets", database_url=database.app_url, redis_url=servers.empty_redis())
        environment = {**replica_environment("gateway-a", secrets), "GATEWAY_NOTICE_S": str(NOTICE_S)}
        started = Replica("gateway-a", environment, tmp_path)
        started.start()
        try:
            await started.ready()
            yield started
        finally:
            started.end()


async def test_a_replica_that_will_end_is_not_ready_serves_on_and_keeps_no_connection(replica: Replica) -> None:
    """Ours: a balancer has time to look elsewhere, and no kept connection closes under its hands (SRV-3)."""
    answers: list[httpx.Response] = []
    ended: list[int] = []

    async def stop() -> None:
        ended.append(await replica.stop())

    async with (
        http_client(base_url=replica.url) as http,
        anyio.create_task_group() as group,
    ):

        async def is_unready() -> bool:
            answer: object = (await http.get("/readyz")).json()
            return answer == {"status": "draining"}

        answers.append(await http.get("/healthz"))
        group.start_soon(stop)
        await until(is_unready, seconds=PATIENCE_S)
        answers.append(await http.get("/healthz"))

    assert ended == [0]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert [answer.headers.get("connection") for answer in answers] == [None, "close"]


async def test_a_second_signal_ends_the_process_at_once(replica: Replica) -> None:
    """Ours: a second signal ends the process at once; otherwise it ends by itself (SRV-3)."""
    ended: list[int] = []
    async with (
        http_client(base_url=replica.url) as http,
        anyio.create_task_group() as group,
    ):

        async def stop() -> None:
            ended.append(await replica.stop())

        async def is_unready() -> bool:
            return (await http.get("/readyz")).status_code == 503

        group.start_soon(stop)
        await until(is_unready, seconds=PATIENCE_S)
        group.start_soon(stop)

    assert ended == [0, 0]
    assert '"stopped"' in replica.log.read_text()
