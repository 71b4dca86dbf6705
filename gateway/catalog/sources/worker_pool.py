"""Worker processes that read and compile documents: two at once per replica, shared fairly between tenants.

Documents are untrusted, so only workers parse them. A worker receives one task, and inherits neither the environment
nor open files. Its memory and CPU time are limited. It is killed when its deadline passes or its caller is cancelled.
"""

import contextlib
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import structlog
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream

from gateway.catalog.sources.limits import CPU_GRACE_S, MAX_WORKER_QUEUE, WORKER_QUEUE_S
from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import TenantId
from gateway.domain.sources import Compilation
from gateway.domain.updates.source_changes import ComparedVersion
from gateway.errors import DocumentTooLarge, InvalidDocument, Unavailable
from gateway.openapi.limits import MAX_MESSAGE_LENGTH
from gateway.openapi.options import PLAIN, DocumentForm, ImportOptions
from gateway.openapi.worker_messages import LENGTH_BYTES, Task, WorkerAnswer, decode_message, write_frame
from gateway.sandbox.processes import child, send_all

log = structlog.get_logger(__name__)

COMMAND = (sys.executable, "-I", "-m", "gateway.openapi.worker")

CONCURRENT_WORKERS = 2
"""Number of documents that one replica reads concurrently."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLimits:
    """Limits on one document."""

    wall_s: float = 30.0
    memory_bytes: int = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledDocument:
    """A compilation, and the document from an archive or a JSON string; None if it is the input itself."""

    compilation: Compilation
    document: bytes | None = None


class WorkerPool:
    """Runs a limited number of worker processes at once, shared fairly between tenants."""

    def __init__(
        self,
        *,
        command: Sequence[str] = COMMAND,
        limits: WorkerLimits | None = None,
        slot_pool: FairSlotPool | None = None,
    ) -> None:
        self._command = command
        self._limits = limits or WorkerLimits()
        self.slot_pool = slot_pool or FairSlotPool(
            "document workers", slots=CONCURRENT_WORKERS, queue=MAX_WORKER_QUEUE, timeout_s=WORKER_QUEUE_S
        )

    async def compile(
        self,
        content: bytes,
        options: ImportOptions,
        *,
        form: DocumentForm = PLAIN,
        before: ComparedVersion | None = None,
        tenant: TenantId | None = None,
    ) -> CompiledDocument:
        """Compile a document, or the document that an archive contains, and compare it with the version `before`.

        Raises:
            InvalidDocument: the document or archive cannot be read, or the compiler failed on it.
            InvalidBody: a JSON value violates a rule of request bodies.
            DocumentTooLarge: the document exceeds a limit of documents, or the time or memory for one.
            BadInput: the options are invalid.
            LimitExceeded: no worker is free in time for this tenant, or too many documents wait.
            Unavailable: the process did not start.
        """
        result = await self._run_task(self._task(options, form, before), content, tenant=tenant)
        compilation = result.compilation()
        if compilation is None:
            raise InvalidDocument("The compiler returned no result for this document.")
        return CompiledDocument(compilation=compilation, document=result.document)

    async def list_missing(self, archive: bytes, *, entry: str, tenant: TenantId) -> Sequence[str]:
        """List the files that the documents of an archive refer to and that it lacks; raises the same errors as
        `compile`.
        """
        form = DocumentForm(is_archive=True, entry=entry, lists_missing=True)
        result = await self._run_task(self._task(ImportOptions(), form), archive, tenant=tenant)
        return result.missing

    def _task(self, options: ImportOptions, form: DocumentForm, before: ComparedVersion | None = None) -> Task:
        limits = self._limits
        cpu_s = int(limits.wall_s) + CPU_GRACE_S
        return Task(memory_bytes=limits.memory_bytes, cpu_s=cpu_s, options=options, form=form, before=before)

    async def _run_task(self, task: Task, content: bytes, *, tenant: TenantId | None) -> WorkerAnswer:
        """Run a worker, and return its complete result; raises the same errors as `compile`."""
        async with self.slot_pool.hold(tenant or ""):
            try:
                with anyio.fail_after(self._limits.wall_s):
                    result, status = await self._run(task, content, tenant or "")
            except TimeoutError:
                raise self._too_slow() from None
        if result.refusal is not None:
            raise result.refusal
        if result.crash is not None or not result.is_complete:
            raise self._incomplete_error(result, status)
        return result

    async def _run(self, task: Task, content: bytes, party: str) -> tuple[WorkerAnswer, int]:
        started = time.monotonic()
        async with child(self._command) as process:
            result = await _exchange(process, task, content, party)
            status = await process.wait()
        log.info(
            "document_read",
            seconds=round(time.monotonic() - started, 3),
            peak_mib=result.peak_bytes // 2**20,
            status=status,
        )
        return result, status

    def _incomplete_error(self, result: WorkerAnswer, status: int) -> InvalidDocument | Unavailable:
        """The error for an incomplete result."""
        if result.crash is not None:
            log.error("document_compiler_crashed", trace=result.crash)
            return InvalidDocument(
                "The compiler failed on this document; nothing was stored. The gateway's log has the details."
            )
        if status == -signal.SIGXCPU:
            return self._too_slow()
        if status < 0:
            memory = self._limits.memory_bytes // 2**20
            return DocumentTooLarge(f"Reading the document takes more than {memory} MiB of memory (the limit).")
        log.error("document_compiler_not_started", status=status)
        return Unavailable("The compiler of documents did not start.")

    def _too_slow(self) -> DocumentTooLarge:
        return DocumentTooLarge(f"Reading the document takes more than {self._limits.wall_s:g} seconds (the limit).")


async def _exchange(process: Process, task: Task, content: bytes, party: str) -> WorkerAnswer:
    """Send the task and receive the result. If the process ends early, the result is incomplete."""
    source, sink = process.stdin, process.stdout
    if source is None or sink is None:  # both are requested
        raise Unavailable("The compiler of documents has no pipes.")
    result = WorkerAnswer()
    async with anyio.create_task_group() as group:
        group.start_soon(_send_task, source, task, content, party)
        try:
            await _listen(sink, result, party)
        finally:
            group.cancel_scope.cancel()
    return result


async def _send_task(stream: ByteSendStream, task: Task, content: bytes, party: str) -> None:
    await send_all(stream, await run_in_thread(CATALOG_CHANGES, party, write_frame, task), content)


async def _listen(stream: ByteReceiveStream, result: WorkerAnswer, party: str) -> None:
    """Receive messages until the result is complete, the process ends, or a message exceeds `MAX_MESSAGE_LENGTH`.

    Messages are decoded in a thread.
    """
    buffered = BufferedByteReceiveStream(stream)
    with contextlib.suppress(anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError):
        while not result.is_complete:
            length = int.from_bytes(await buffered.receive_exactly(LENGTH_BYTES), "big")
            if length > MAX_MESSAGE_LENGTH:
                return
            content = await buffered.receive_exactly(length)
            result.take(await run_in_thread(CATALOG_CHANGES, party, decode_message, content))
