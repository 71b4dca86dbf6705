"""One worker process: a replica that serves on sockets of its supervisor, and drains at the request of that."""

import asyncio
import os
import signal
from functools import partial

import structlog

from gateway.app.build import ReplicaHost
from gateway.app.exception_leaves import first_leaf
from gateway.app.python.plugins import load_extras
from gateway.app.secrets import find_keys
from gateway.app.server.serve import Replica
from gateway.app.workers.channel import MessageKind, WorkerChannel
from gateway.app.workers.entry import WorkerStart
from gateway.app.workers.siblings import Siblings
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.errors import BrokenSetting, GatewayError, Unavailable
from gateway.settings import load_settings
from gateway.telemetry.logs import configure_logging
from gateway.telemetry.standard_streams import lost_lines

log = structlog.get_logger(__name__)


async def serve_worker(start: WorkerStart) -> None:
    """Serve until the drain that the supervisor requests has ended; send it the reason of a failure."""
    channel = await WorkerChannel.open(start.control)
    siblings = Siblings(channel)
    try:
        await _serve_replica(start, channel, siblings)
        siblings.report()
    except (GatewayError, BaseExceptionGroup) as error:
        leaf = first_leaf(error, GatewayError)
        if not isinstance(leaf, GatewayError):
            log.exception("worker_failed", worker=start.number)
        reason = leaf.cause if isinstance(leaf, Unavailable) else str(leaf) or type(leaf).__name__
        channel.send(MessageKind.FAILED, reason=reason, is_setting=isinstance(leaf, BrokenSetting))
    await channel.flush()
    channel.close()


async def _serve_replica(start: WorkerStart, channel: WorkerChannel, siblings: Siblings) -> None:
    settings = load_settings(**start.options).model_copy(update={"port": start.port})
    lines = configure_logging(level=settings.log_level, as_json=settings.log_as_json)
    code, keys = load_extras(settings), find_keys(settings)
    host = ReplicaHost(lost_lines=partial(lost_lines, lines), siblings=siblings)
    replica = Replica(settings, start.addresses, keys, code=code, host=host)
    _receive_signals(replica)

    async def started() -> None:
        log.info("worker_serving", worker=start.number, pid=os.getpid())
        channel.send(MessageKind.READY)

    async with replica.opened(), TaskSupervisor() as tasks:
        tasks.spawn(siblings.run, replica.drain.begin, replica.drain.hasten)
        await replica.serve(start.sockets, on_started=started)


def _receive_signals(replica: Replica) -> None:
    """Begin the drain at SIGTERM. A terminal sends the other two to the whole group, so the supervisor decides."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, replica.drain.begin)
    for number in (signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, int)
