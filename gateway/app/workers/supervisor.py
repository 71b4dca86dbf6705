"""Several workers of one machine: `serve_workers` binds the sockets, starts the workers, and replaces those that end.

Each worker is a replica with its own id, connections and caches; workers are as isolated from each other as replicas.
They are forked from a process that has imported the gateway (`multiprocessing`'s fork server), so its memory is
shared. The supervisor serves no request. If it is killed, the workers notice it and drain.

SIGHUP replaces the workers one after another: the new one reads the files of settings again and serves before the
former one drains. Variables of the environment and code stay those of the fork server. SIGTERM and SIGINT drain all; a
second one ends their waits.
"""

import asyncio
import multiprocessing
import signal
import socket
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.process import BaseProcess

import anyio
import structlog

from gateway.app.backends import Backends, open_backends
from gateway.app.secrets import find_keys
from gateway.app.server.hangups import Hangups
from gateway.app.server.limits import LISTENER_CLOSE_S
from gateway.app.server.running import Ready, describe_running
from gateway.app.workers.channel import MessageKind, WorkerChannel
from gateway.app.workers.entry import WorkerStart, run_worker
from gateway.app.workers.limits import ANSWER_S, EXIT_MARGIN_S, FIRST_PAUSE_S, MAX_PAUSE_S, STABLE_S, START_S
from gateway.app.workers.metric_sums import MetricSums
from gateway.app.workers.sockets import WorkerSockets, bind_workers
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.errors import BrokenSetting, GatewayError
from gateway.identity.operator_keys import key_names
from gateway.settings import Settings
from gateway.telemetry.logs import configure_logging
from gateway.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)

_PRELOADED = ["gateway.app.workers.preload"]


class WorkerFailed(GatewayError):
    """A worker did not start."""


async def serve_workers(
    settings: Settings, *, count: int, options: Mapping[str, object], ready: Ready | None = None
) -> None:
    """Serve with so many workers until SIGTERM or SIGINT; call `ready` once all of them respond.

    `options` are the settings of the command line; each worker reads the others itself.

    Raises:
        BrokenSetting: the configuration does not permit a start.
        EmbeddedServerFailed: an embedded server did not start.
        WorkerFailed: a worker did not start.
    """
    hangups = Hangups()
    with hangups.received():
        configure_logging(level=settings.log_level, as_json=settings.log_as_json)
        settings.check_exposure()
        sockets = bind_workers(settings, count)
        settings = settings.model_copy(update={"port": sockets[0].mcp.port})
        keys = find_keys(settings)  # a missing key is generated once, before the workers read it
        async with open_backends(settings) as addresses, TaskSupervisor() as tasks:
            supervisor = _Supervisor(settings, sockets, addresses, options=options, tasks=tasks)
            hangups.answer(supervisor.replace_workers, tasks)
            with supervisor.on_signals():
                try:
                    await supervisor.start()
                    running = describe_running(
                        settings, sockets[0].mcp, sockets[0].admin, keys=keys, addresses=addresses
                    )
                    log.info("serving", **running.where, workers=count, operator_keys=key_names(keys.operator_key))
                    if ready is not None:
                        await ready(running)
                    await supervisor.stopping.wait()
                finally:
                    with anyio.CancelScope(shield=True):
                        await supervisor.stop()
        log.info("stopped")


@dataclass(eq=False, slots=True, kw_only=True)
class _Worker:
    """A process, from its start to its end."""

    process: BaseProcess
    channel: WorkerChannel
    started_at: float
    serving: asyncio.Event = field(default_factory=asyncio.Event)
    reported: asyncio.Event = field(default_factory=asyncio.Event)
    exited: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """It has exited, and its last messages are read."""
    failure: GatewayError | None = None

    @property
    def is_serving(self) -> bool:
        return self.serving.is_set() and not self.ended.is_set()


@dataclass(eq=False, slots=True, kw_only=True)
class _WorkerSlot:
    """The place of one worker: its number and its sockets stay when the worker is replaced."""

    number: int
    sockets: WorkerSockets
    worker: _Worker | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the worker is replaced."""
    early_ends: int = 0


class _Supervisor:
    def __init__(
        self,
        settings: Settings,
        sockets: Sequence[WorkerSockets],
        addresses: Backends,
        *,
        options: Mapping[str, object],
        tasks: TaskSupervisor,
    ) -> None:
        self._settings = settings
        self._addresses = addresses
        self._options = options
        self._tasks = tasks
        self._slots = [_WorkerSlot(number=number, sockets=each) for number, each in enumerate(sockets)]
        self._workers: set[_Worker] = set()
        self._sums = MetricSums(Metrics().families)
        self._collection = asyncio.Lock()
        self._replacement = asyncio.Lock()
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload(_PRELOADED)
        self.stopping = asyncio.Event()

    @contextmanager
    def on_signals(self) -> Generator[None]:
        """Stop at SIGINT and SIGTERM while the block runs."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._receive)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    async def start(self) -> None:
        """Start all workers: the first one alone, because the others would fail for the same reason.

        Raises:
            BrokenSetting, WorkerFailed: a worker did not start.
        """
        first, *others = self._slots
        for group in ([first], others):
            for slot in group:
                slot.worker = await self._start(slot)
            for slot in group:
                await self._await_start(slot.worker)
        for slot in self._slots:
            self._tasks.spawn_loop(partial(self._keep, slot))

    async def replace_workers(self) -> None:
        """Replace all workers, one after another; if a new one does not start, the former ones go on serving."""
        async with self._replacement:
            for slot in self._slots:
                if self.stopping.is_set() or not await self._replace(slot):
                    return
            log.info("workers_replaced")

    async def stop(self) -> None:
        """Drain all workers, and close the sockets once they have ended."""
        self.stopping.set()
        async with anyio.create_task_group() as group:
            for worker in self._workers.copy():
                group.start_soon(self._end, worker)
        for slot in self._slots:
            slot.sockets.close()

    def _receive(self) -> None:
        if self.stopping.is_set():  # the second signal
            for worker in self._workers:
                worker.channel.send(MessageKind.HASTEN)
        log.info("draining", notice_s=self._settings.notice_s)
        self.stopping.set()

    async def _start(self, slot: _WorkerSlot) -> _Worker:
        ours, theirs = socket.socketpair()
        start = WorkerStart(
            number=slot.number,
            options=self._options,
            port=self._settings.port,
            addresses=self._addresses,
            sockets=slot.sockets.all,
            control=theirs,
        )
        process = self._processes.Process(target=run_worker, args=(start,), name=f"worker-{slot.number}")
        process.start()
        theirs.close()
        worker = _Worker(process=process, channel=await WorkerChannel.open(ours), started_at=time.monotonic())
        self._workers.add(worker)
        asyncio.get_running_loop().add_reader(process.sentinel, self._note_exit, worker)
        self._tasks.spawn(self._listen, worker)
        return worker

    async def _await_start(self, worker: _Worker | None) -> None:
        """Wait until a worker serves.

        Raises:
            BrokenSetting, WorkerFailed: it ended, or does not serve in time.
        """
        if worker is None or not await _serves(worker):
            failure = None if worker is None else worker.failure
            raise failure or WorkerFailed("a worker process did not start; see the log")

    async def _keep(self, slot: _WorkerSlot) -> None:
        """Start the worker of a slot again whenever it ends."""
        while (worker := slot.worker) is not None:
            await worker.ended.wait()
            async with slot.lock:
                if self.stopping.is_set():
                    return
                if worker is not slot.worker:
                    continue
                await self._pause(slot, worker)
                slot.worker = await self._start(slot)

    async def _pause(self, slot: _WorkerSlot, worker: _Worker) -> None:
        """Wait after an early end, longer each time. Meanwhile the kernel gives connections to the other workers."""
        lived_s = time.monotonic() - worker.started_at
        slot.early_ends = 0 if lived_s >= STABLE_S else slot.early_ends + 1
        pause_s = 0.0 if slot.early_ends == 0 else min(MAX_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (slot.early_ends - 1))
        reason = None if worker.failure is None else worker.failure.message
        exit_code = worker.process.exitcode
        log.warning("worker_ended", worker=slot.number, exit_code=exit_code, reason=reason, restart_in_s=pause_s)
        if pause_s:
            slot.sockets.withdraw()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), pause_s)

    async def _replace(self, slot: _WorkerSlot) -> bool:
        """Start a new worker on the same sockets, then drain the former one; False if the new one does not start."""
        async with slot.lock:
            former, new = slot.worker, await self._start(slot)
            if not await _serves(new):
                reason = None if new.failure is None else new.failure.message
                log.error("worker_not_replaced", worker=slot.number, reason=reason)
                await self._end(new)
                return False
            slot.worker = new
        if former is not None:
            await self._end(former)
        return True

    async def _end(self, worker: _Worker) -> None:
        """Drain a worker; kill it if it does not end in time."""
        worker.channel.send(MessageKind.DRAIN)
        patience_s = self._settings.notice_s + self._settings.drain_s + LISTENER_CLOSE_S + EXIT_MARGIN_S
        with suppress(TimeoutError):
            await asyncio.wait_for(worker.ended.wait(), patience_s)
        if not worker.ended.is_set():
            log.warning("worker_killed", pid=worker.process.pid)
            worker.process.kill()
            await worker.ended.wait()

    def _note_exit(self, worker: _Worker) -> None:
        """Note the exit that the fork server reports. If that has ended itself, the worker is requested to drain."""
        asyncio.get_running_loop().remove_reader(worker.process.sentinel)
        worker.process.join()
        worker.channel.send(MessageKind.DRAIN)
        worker.exited.set()

    async def _listen(self, worker: _Worker) -> None:
        """Respond to the messages of a worker until it ends."""
        while (message := await worker.channel.receive()) is not None:
            match message["kind"]:
                case MessageKind.READY:
                    worker.serving.set()
                    self._announce()
                case MessageKind.FAILED:
                    failure = BrokenSetting if message["is_setting"] else WorkerFailed
                    worker.failure = failure(message["reason"])
                case MessageKind.REPORT:
                    self._sums.report(worker, message["page"])
                    worker.reported.set()
                case MessageKind.COLLECT:
                    self._tasks.spawn(self._collect, worker)
                case _:
                    continue
        await worker.exited.wait()
        worker.channel.close()
        self._workers.discard(worker)
        self._sums.end(worker)
        worker.ended.set()
        self._announce()

    async def _collect(self, asking: _Worker) -> None:
        """Send the metrics of all workers to one of them."""
        async with self._collection:
            serving = [worker for worker in self._workers if worker.is_serving]
            for worker in serving:
                worker.reported.clear()
                worker.channel.send(MessageKind.EXAMINE)
            with suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_S):
                    for worker in serving:
                        await worker.reported.wait()
            asking.channel.send(MessageKind.COLLECTED, page=self._sums.render())

    def _announce(self) -> None:
        """Send to each worker how many serve."""
        serving = sum(slot.worker is not None and slot.worker.is_serving for slot in self._slots)
        for worker in self._workers:
            worker.channel.send(MessageKind.WORKERS, serving=serving, configured=len(self._slots))


async def _serves(worker: _Worker) -> bool:
    """Wait until a worker serves; False if it ends before, or takes too long."""
    waits = [asyncio.ensure_future(event.wait()) for event in (worker.serving, worker.ended)]
    try:
        await asyncio.wait(waits, timeout=START_S, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    return worker.is_serving
