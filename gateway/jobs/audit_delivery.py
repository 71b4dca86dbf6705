"""Delivery of audit entries to the sinks of tenants: at least once, in batches, one replica at a time for each sink.

A batch is marked as delivered only after its receiver has accepted it. A failed delivery is retried with exponential
back-off, at most five minutes; later entries wait in the database, not in memory.
"""

import base64
import contextlib
import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import msgspec
import structlog

from gateway.catalog import audit_sinks
from gateway.catalog.audit_sinks import SinkDelivery
from gateway.catalog.transaction import CatalogContext
from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.domain.fairness.thread_kinds import AUDIT_FILES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.http.requests import UpstreamRequest
from gateway.domain.identifiers import AuditSinkId
from gateway.domain.updates.audit_sinks import SinkKind
from gateway.errors import CredentialMissing, EgressDenied, GatewayError, LimitExceeded, SecretUnreadable, UpstreamError
from gateway.handlers.credentials import is_among, with_credential
from gateway.jobs.limits import (
    MAX_DOUBLINGS,
    MAX_FAULT_LENGTH,
    MAX_RECEIVER_BYTES,
    MAX_SINK_PAUSE_S,
    SINK_BATCH_BYTES,
    SINK_CLOSE_S,
    SINK_PAUSE_S,
    SINK_SEND_S,
    TIME_SLICE_S,
)
from gateway.jobs.watch_poller import CredentialLookup
from gateway.store.audit.export_lines import ExportKey, entry_line, moment
from gateway.store.audit.hash_chain import Link
from gateway.store.jobs import Job
from gateway.upstream.client import UpstreamClient

log = structlog.get_logger(__name__)

LEASE = timedelta(seconds=60)
_BATCH_SIZE = 500
_PRIORITY = 109
"""Facility 13 (log audit), severity 5 (notice), RFC 5424 section 6.2.1."""
_NOT_A_NAME = re.compile(r"[^!-~]")
_RETRYABLE_ERRORS = (UpstreamError, CredentialMissing, SecretUnreadable, OSError, TimeoutError)

_encode = msgspec.json.Encoder().encode


@dataclass(slots=True, kw_only=True)
class AuditDelivery:
    """Delivers audit entries to the sinks that are due."""

    catalog: CatalogContext
    upstream: UpstreamClient
    named: CredentialLookup
    folder: Path | None = None
    """The directory of file sinks; None disables file sinks on this replica."""
    delivered: int = 0
    failures: int = 0
    lags: BoundedCache[AuditSinkId, float] = field(default_factory=lambda: BoundedCache(10_000))
    """Lag of this replica's sinks: the age in seconds of the oldest entry in the last batch."""

    @property
    def lag_s(self) -> float:
        """The largest lag of this replica's sinks."""
        return max(self.lags.values(), default=0.0)

    async def perform(self, due: Job) -> None:
        """Deliver the waiting entries of one sink, unless another replica is delivering them.

        Raises:
            Unavailable: PostgreSQL or Redis is unavailable; the job runs again when its lease expires.
        """
        delivery = await audit_sinks.begin_delivery(self.catalog, due, lease=LEASE)
        if delivery is None:
            return
        pause_s = SINK_PAUSE_S
        ends_at = anyio.current_time() + TIME_SLICE_S
        try:
            while anyio.current_time() < ends_at:
                batch = _limit_size(await audit_sinks.read_behind(self.catalog, delivery, limit=_BATCH_SIZE))
                if not batch:
                    self.lags.pop(delivery.sink.id, None)
                    break
                self._note_lag(delivery, batch)
                with anyio.fail_after(SINK_SEND_S):
                    await self._send(delivery, batch)
                moved = await audit_sinks.note_delivered(self.catalog, delivery, batch, lease=LEASE)
                if moved is None:
                    return
                delivery = moved
                self.delivered += len(batch)
        except _RETRYABLE_ERRORS as error:
            pause_s = await self._note_failure(delivery, error)
        await audit_sinks.end_delivery(self.catalog, delivery, again_at=datetime.now(UTC) + timedelta(seconds=pause_s))

    async def _note_failure(self, delivery: SinkDelivery, error: Exception) -> float:
        """Store the fault; return the seconds until the next attempt."""
        self.failures += 1
        reason = error.message if isinstance(error, GatewayError) else _describe_error(error)
        log.warning("audit_not_delivered", tenant_id=delivery.tenant, sink=delivery.sink.id, reason=reason)
        failures = await audit_sinks.note_failed(self.catalog, delivery, reason[:MAX_FAULT_LENGTH])
        return min(SINK_PAUSE_S * 2.0 ** min(failures, MAX_DOUBLINGS), MAX_SINK_PAUSE_S)

    def _note_lag(self, delivery: SinkDelivery, batch: Sequence[Link]) -> None:
        oldest_us = min(one.row.at_us or 0 for one in batch)
        self.lags[delivery.sink.id] = max(0.0, datetime.now(UTC).timestamp() - oldest_us / 1_000_000)

    async def _send(self, delivery: SinkDelivery, batch: Sequence[Link]) -> None:
        links = sorted(batch, key=lambda one: one.row.id)
        lines = [_encode(entry_line(one)) for one in links]
        match delivery.sink.kind:
            case SinkKind.HTTPS:
                await self._post(delivery, b"".join(line + b"\n" for line in lines))
            case SinkKind.SYSLOG:
                await self._send_syslog(delivery, b"".join(map(_syslog_frame, links, lines)))
            case SinkKind.FILE:
                await self._append_to_file(delivery, b"".join(line + b"\n" for line in lines))

    async def _post(self, delivery: SinkDelivery, body: bytes) -> None:
        """POST the batch in one request, signed per Standard Webhooks (Ed25519). Any 2xx status acknowledges it."""
        sink = delivery.sink
        if delivery.origins is not None and not is_among(sink.target, delivery.origins):
            raise EgressDenied("The tenant's policy does not allow requests to this origin.")
        message_id = f"aud_{hashlib.sha256(body).hexdigest()[:32]}"
        timestamp = str(int(datetime.now(UTC).timestamp()))
        key = ExportKey.of(delivery.tenant, self.catalog.sealer)[0]
        signature = base64.b64encode(key.private.sign(f"{message_id}.{timestamp}.".encode() + body)).decode()
        headers = (
            ("Content-Type", "application/jsonl"),
            ("Webhook-Id", message_id),
            ("Webhook-Timestamp", timestamp),
            ("Webhook-Signature", f"v1a,{signature}"),
        )
        request = UpstreamRequest(method="POST", url=sink.target, headers=headers, body=body, idempotent=True)
        if sink.credential is not None:
            credential = await self.named(delivery.tenant, sink.credential)
            if credential is None or not is_among(sink.target, credential.origins):
                raise CredentialMissing("The credential is not stored for this origin.")
            request = with_credential(request, credential)
        response = await self.upstream.send(request, tenant=delivery.tenant, limit_bytes=MAX_RECEIVER_BYTES)
        if not 200 <= response.status < 300:
            raise OSError(f"the endpoint responded with status {response.status}")

    async def _send_syslog(self, delivery: SinkDelivery, messages: bytes) -> None:
        """Send messages over one connection, and wait until the receiver has closed it, for at most 5 s."""
        target = audit_sinks.read_syslog_target(delivery.sink.target)
        if target is None:
            raise OSError("the syslog target is invalid")
        reader, writer = await self.upstream.open_stream(target[0], tenant=delivery.tenant, is_tls=target[1])
        try:
            writer.write(messages)
            await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()
                with anyio.move_on_after(SINK_CLOSE_S):
                    while await reader.read(
                        MAX_RECEIVER_BYTES
                    ):  # a connection reset counts as a failure, so the batch is repeated
                        pass
        finally:
            writer.close()
            with contextlib.suppress(OSError), anyio.move_on_after(SINK_CLOSE_S):
                await writer.wait_closed()

    async def _append_to_file(self, delivery: SinkDelivery, lines: bytes) -> None:
        if self.folder is None:
            raise OSError("GATEWAY_AUDIT_FOLDER is not set on this replica")
        path = self.folder / f"{delivery.tenant}.{delivery.sink.target}.jsonl"
        try:
            await run_in_thread(AUDIT_FILES, delivery.tenant, append_lines, path, lines)
        except LimitExceeded as refused:  # earlier writes hang
            raise OSError(refused.message) from None


def _limit_size(links: Sequence[Link]) -> Sequence[Link]:
    """The longest prefix of at most 1 MiB; contains at least one entry."""
    size = 0
    for index, one in enumerate(links):
        size += 1024 + len(one.row.detail)
        if size > SINK_BATCH_BYTES and index:
            return links[:index]
    return links


def _syslog_frame(link: Link, line: bytes) -> bytes:
    """One message of RFC 5424, prefixed with its length (RFC 5425 section 4.3)."""
    name = _NOT_A_NAME.sub("_", link.row.action)[:32] or "-"
    message = f"<{_PRIORITY}>1 {moment(link.row.at_us) or '-'} - mcp-gateway - {name} - ".encode() + line
    return b"%d %b" % (len(message), message)


def append_lines(path: Path, lines: bytes) -> None:
    """Append lines durably. If an interrupted write left an incomplete last line, that line is terminated first."""
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "ab") as file:  # unbuffered, a write to a full disk may end early without an error
        size = os.fstat(handle).st_size
        if size and os.pread(handle, 1, size - 1) != b"\n":  # guard: sink-file-torn
            file.write(b"\n")
        file.write(lines)
        file.flush()
        os.fsync(handle)


def _describe_error(error: Exception) -> str:
    return "no response in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
