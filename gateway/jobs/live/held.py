"""Open attachments of this replica: the reports of their sources lead to new discoveries and resource updates."""

import hashlib
import secrets
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from random import uniform
from typing import Any

import anyio
import anyio.abc
import msgspec
import structlog

from gateway.definitions.live.page_uris import is_page, shown_uri
from gateway.domain.identifiers import TenantId
from gateway.domain.live_sources import Discovery, LiveKind, LiveSource
from gateway.domain.primitives import Family
from gateway.domain.refusals import LiveSourceDetached, LiveSourceFailed
from gateway.errors import GatewayError
from gateway.jobs.live.limits import (
    DISCOVER_S,
    DISCOVERY_RETRY_S,
    MAX_DISCOVERY_FAILURES,
    MAX_FOLLOWED,
    PACE_S,
    REREAD_S,
    SUBSCRIBE_S,
)
from gateway.jobs.live.null_client import NULL_CLIENT
from gateway.jobs.live.page_reader import PageReader
from gateway.jobs.live.source_reports import SourceReports
from gateway.redis.live.leases import SourceKey
from gateway.upstream.live.interfaces import LiveAttachment, LiveClient, LiveMethod

log = structlog.get_logger(__name__)

_BURST = 10
_PAUSE_FACTOR = 4
"""Pause between two discoveries, as a multiple of the duration of the first, because the check of schemas is costly."""

Record = Callable[["HeldAttachment", Discovery], Awaitable[bool]]
"""Stores a discovery; False if the source was changed concurrently and has to be reattached."""
PublishUpdate = Callable[[LiveSource, str], Awaitable[None]]


@dataclass(slots=True, eq=False)
class HeldAttachment:
    """One open attachment."""

    source: LiveSource
    attachment: LiveAttachment
    reports: SourceReports
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    resources: frozenset[str] = frozenset()
    has_templates: bool = False
    can_subscribe: bool = False
    reread_s: float = REREAD_S
    _digest: bytes = b""
    _pages: PageReader = field(default_factory=PageReader)

    async def discover(self) -> Discovery:
        """List the source's primitives.

        Raises:
            LiveSourceFailed: the source does not list them, or not in time.
        """
        try:
            with anyio.fail_after(DISCOVER_S):
                found = await self.attachment.discover()
                is_reviewed = not self.source.accepts_changes
                found = await self._pages.add_pages(self.attachment, found, is_reviewed=is_reviewed)
        except TimeoutError:
            raise LiveSourceFailed(f"the source did not list its primitives within {DISCOVER_S:.0f} s") from None
        found = replace(found, notices=(*found.notices, *self.reports.notices))
        self._digest = _digest_of(found)
        self.resources = frozenset(one.name for one in found.primitives if one.family is Family.RESOURCE)
        self.has_templates = any(one.family is Family.TEMPLATE for one in found.primitives)
        self.can_subscribe = found.can_subscribe
        return found

    async def follow(self, record: Record, publish: PublishUpdate) -> None:
        """Handle reports until the source has to be reattached."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._subscribe)
            await self._follow(record, publish, group)
            group.cancel_scope.cancel()

    async def _follow(self, record: Record, publish: PublishUpdate, group: anyio.abc.TaskGroup) -> None:
        rest_until, failures, due_at = 0.0, 0, time.monotonic() + self._pause_s()
        ended_at: deque[float] = deque(maxlen=_BURST)
        while True:
            began = time.monotonic()
            has_changed, updates = await self.reports.next(rest_s=rest_until - began, due_s=due_at - began)
            for uri in updates:
                if uri in self.resources or self.has_templates:  # guard: live-update-of-its-own
                    await self._publish(publish, uri)
            began = time.monotonic()
            has_changed |= any(map(is_page, updates))
            if not has_changed and began < due_at:
                continue
            match await self._renew(record):
                case _Renewed.OUTDATED:
                    return
                case _Renewed.FAILED if not has_changed:
                    pass  # nothing was reported; pings find out whether the source is lost
                case _Renewed.FAILED:
                    failures += 1
                    if failures == MAX_DISCOVERY_FAILURES:
                        return
                    self.reports.changed()
                case _Renewed.DONE:
                    failures = 0
                    group.start_soon(self._subscribe)
            now = time.monotonic()
            is_busy = len(ended_at) == _BURST and now - ended_at[0] < _BURST * PACE_S
            ended_at.append(now)
            rest_s = max(_PAUSE_FACTOR * (now - began), PACE_S if is_busy else 0.0, failures * DISCOVERY_RETRY_S)
            rest_until = now + rest_s  # guard: live-discovery-rest
            due_at = now + max(rest_s, self._pause_s())

    async def _publish(self, publish: PublishUpdate, uri: str) -> None:
        """Publish an update under the URI that clients see."""
        try:
            await publish(self.source, shown_uri(self.source.name, uri))
        except ValueError:
            log.debug("live_update_skipped", source=self.source.id)

    def _pause_s(self) -> float:
        """Seconds until the list is read again without a report."""
        return self.reread_s * uniform(0.8, 1.2)  # noqa: S311

    async def _renew(self, record: Record) -> "_Renewed":
        """Discover the primitives again, and record the result."""
        try:
            before = self._digest
            found = await self.discover()
            if self._digest == before or await record(self, found):
                return _Renewed.DONE
            return _Renewed.OUTDATED
        except GatewayError as error:
            self._digest = b""
            log.warning("live_discovery_failed", source=self.source.id, reason=error.message)
            return _Renewed.FAILED

    async def _subscribe(self) -> None:
        if not self.can_subscribe:
            return
        for uri in sorted(self.resources)[:MAX_FOLLOWED]:
            try:
                with anyio.fail_after(SUBSCRIBE_S):
                    await self.attachment.request("resources/subscribe", {"uri": uri}, NULL_CLIENT)
            except LiveSourceDetached:
                return
            except (GatewayError, TimeoutError) as error:
                log.info("live_resource_not_followed", source=self.source.id, uri=uri, reason=str(error))


class _Renewed(Enum):
    """The outcome of a further discovery."""

    DONE = auto()
    FAILED = auto()
    OUTDATED = auto()
    """The source was changed concurrently and has to be reattached."""


def _digest_of(discovery: Discovery) -> bytes:
    """The digest of a discovery; a random one if a definition is not JSON."""
    try:
        return hashlib.sha256(msgspec.json.encode(discovery)).digest()
    except (TypeError, ValueError, RecursionError):
        return secrets.token_bytes()


class HeldAttachments:
    """The attachments that are open at this replica, by source."""

    def __init__(self) -> None:
        self._held: dict[SourceKey, HeldAttachment] = {}
        self.scopes: dict[SourceKey, anyio.CancelScope] = {}
        """The scopes of attachments that are open or being opened; cancelling one closes its attachment."""

        self.failures: Counter[str] = Counter({kind.value: 0 for kind in LiveKind})
        """Attempts to attach that failed, and attachments that were lost, by kind."""

    def count_kinds(self) -> Mapping[str, int]:
        """Return the number of open attachments of each kind."""
        open_now = Counter(held.source.kind.value for held in self._held.values())
        return {kind.value: open_now[kind.value] for kind in LiveKind}

    def __contains__(self, key: SourceKey) -> bool:
        """True if the source's attachment is open here."""
        return key in self._held

    def retire_tenant(self, tenant: TenantId) -> None:
        """Close all attachments of a tenant that was removed."""
        for key in [key for key in self.scopes if key.tenant == tenant]:
            self.retire(key)

    def attachments(self) -> Mapping[SourceKey, str]:
        """Return the identifiers of the open attachments."""
        return {key: held.id for key, held in self._held.items()}

    def interrupt(self, key: SourceKey) -> None:
        """Close the source's attachment, if it is open or being opened here; it is due again at once."""
        scope = self.scopes.get(key)
        if scope is not None:
            scope.cancel()

    def retire(self, key: SourceKey) -> None:
        """Close the attachment of a source that was changed or removed, and end its callers' sessions."""
        if key in self._held:
            self._held[key].attachment.retire()
        self.interrupt(key)

    def add(self, key: SourceKey, held: HeldAttachment) -> None:
        """Add an attachment; it replaces the source's earlier one."""
        self._held[key] = held

    def remove(self, key: SourceKey, held: HeldAttachment) -> None:
        """Remove an attachment, unless the source has a later one."""
        if self._held.get(key) is held:
            del self._held[key]

    async def serve(
        self, key: SourceKey, method: LiveMethod, params: Mapping[str, object], client: LiveClient
    ) -> Mapping[str, Any]:
        """Run a request at an attachment of this replica.

        Raises:
            LiveSourceDetached: the source's attachment is not open here.
            GatewayError: the request failed.
        """
        held = self._held.get(key)
        if held is None:
            raise LiveSourceDetached("the live source is not attached", retry_after_s=1.0)
        return await held.attachment.request(method, params, client)
