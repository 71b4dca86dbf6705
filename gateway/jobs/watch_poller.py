"""One poll of a watched URL: the request, the comparison with the previous body, and the time of the next poll.

Only a different body counts as a change; `ETag` and `Last-Modified` avoid the transfer of an unchanged body.
Subscribers of the resource are notified before the result is stored, so an interrupted poll is repeated.
"""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import structlog

from gateway.catalog.transaction import CatalogContext
from gateway.catalog.updates.resource_updates import publish_updates
from gateway.catalog.updates.watches import Poll, begin_poll, end_poll
from gateway.domain.http.requests import NamedCredential, UpstreamRequest
from gateway.domain.identifiers import TenantId
from gateway.domain.updates.poll_delay import poll_delay
from gateway.domain.updates.watches import Sighting, Watch
from gateway.errors import CredentialMissing, EgressDenied, NotFound, SecretUnreadable, UpstreamError
from gateway.handlers.credentials import is_among, with_credential
from gateway.store.jobs import Job
from gateway.upstream.client import FullResponse, UpstreamClient
from gateway.upstream.conditional_requests import NOT_MODIFIED, condition_headers, validator_of

log = structlog.get_logger(__name__)

MAX_LOOK_S = 60.0
"""Seconds of a replica's lease on a poll that it has begun; the deadlines of the upstream request are shorter."""
MAX_BACKOFF_S = 3600.0
"""The longest back-off after failed polls, in seconds, unless the watch's own interval is longer."""
MAX_RESPONSE_BYTES = 10 * 1024 * 1024
_OK, _REDIRECTS, _ERRORS = 200, 300, 400
_MAX_FAULT_LENGTH = 300

Named = Callable[[TenantId, str], Awaitable[NamedCredential | None]]
"""Returns the tenant's credential of a name, with its secret; None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPoller:
    """Makes the polls that are due."""

    catalog: CatalogContext
    upstream: UpstreamClient
    named: Named

    async def perform(self, due: Job) -> None:
        """Make one poll, unless another replica makes it.

        Raises:
            Unavailable: a part of the gateway is unavailable; the poll is made again.
        """
        now = datetime.now(UTC)
        look = await begin_poll(self.catalog, due, until=now + timedelta(seconds=MAX_LOOK_S))
        if look is None:
            return
        watch = look.watch
        try:
            seen = judge(watch.seen, await self._look(look), now=now)
        except (UpstreamError, NotFound, SecretUnreadable) as error:
            seen = fail(watch.seen, error.message, now=now)
        if seen.changed_at == now:
            await publish_updates(look.tenant, self.catalog, [watch.uri])
            log.info("watch_changed", tenant_id=look.tenant, watch=watch.id)
        await end_poll(self.catalog, look, seen, again_at=now + pause(watch, seen))

    async def _look(self, look: Poll) -> FullResponse:
        watch = look.watch
        if not look.is_known:
            raise NotFound("the tenant has no such resource any more")
        if look.origins is not None and not is_among(watch.url, look.origins):
            raise EgressDenied("The tenant's policy does not allow requests to this origin.")
        request = make_request(watch)
        if watch.credential is not None:
            named = await self.named(look.tenant, watch.credential)
            if named is None or not is_among(watch.url, named.origins):
                raise CredentialMissing("The credential is not stored for this origin.")
            request = with_credential(request, named)
        # guard: egress-tenant-of-each-request
        return await self.upstream.send_full(request, tenant=look.tenant, limit_bytes=MAX_RESPONSE_BYTES)


def make_request(watch: Watch) -> UpstreamRequest:
    """Return the request of a poll: conditional if the last complete response had an `ETag` or `Last-Modified`."""
    headers = (("Accept", "*/*"), *condition_headers(watch.seen))
    return UpstreamRequest(method="GET", url=watch.url, headers=headers, idempotent=True)


def judge(before: Sighting, answer: FullResponse, *, now: datetime) -> Sighting:
    """Return the result of a poll; `changed_at` is set to `now` if the body differs from the previous body."""
    if answer.status == NOT_MODIFIED and before.digest is not None:
        return replace(before, failures=0, fault=None, checked_at=now)
    if not _OK <= answer.status < _REDIRECTS:
        is_redirect = _REDIRECTS <= answer.status < _ERRORS and answer.status != NOT_MODIFIED
        more = "; redirects are not followed" if is_redirect else ""
        return fail(before, f"the URL responded with status {answer.status}{more}", now=now)
    digest = hashlib.sha256(answer.body).digest()
    is_other = before.digest is not None and before.digest != digest
    return Sighting(
        etag=validator_of(answer, "etag"),
        last_modified=validator_of(answer, "last-modified"),
        digest=digest,
        checked_at=now,
        changed_at=now if is_other else before.changed_at,
    )


def fail(before: Sighting, why: str, *, now: datetime) -> Sighting:
    """Return the result of a failed poll, which keeps the state of the last successful poll."""
    return replace(before, failures=before.failures + 1, fault=why[:_MAX_FAULT_LENGTH], checked_at=now)


def pause(watch: Watch, seen: Sighting) -> timedelta:
    """Return the time until the next poll of a watch."""
    interval = timedelta(seconds=watch.interval_s)
    return poll_delay(interval, failures=seen.failures, max_delay=timedelta(seconds=MAX_BACKOFF_S))
