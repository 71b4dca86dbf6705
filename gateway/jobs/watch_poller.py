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
from gateway.jobs.limits import MAX_BACKOFF_S, MAX_FAULT_LENGTH, MAX_WATCHED_BYTES, POLL_LEASE_S
from gateway.store.jobs import Job
from gateway.upstream.client import FullResponse, UpstreamClient
from gateway.upstream.conditional_requests import NOT_MODIFIED, condition_headers, validator_of

log = structlog.get_logger(__name__)

_OK, _REDIRECTS, _ERRORS = 200, 300, 400

CredentialLookup = Callable[[TenantId, str], Awaitable[NamedCredential | None]]
"""Returns the tenant's credential of a name, with its secret; None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPoller:
    """Runs due polls of watched URLs."""

    catalog: CatalogContext
    upstream: UpstreamClient
    named: CredentialLookup

    async def perform(self, due: Job) -> None:
        """Run one poll, unless another replica has leased it.

        Raises:
            Unavailable: PostgreSQL or Redis is unavailable; the poll is repeated when its lease expires.
        """
        now = datetime.now(UTC)
        poll = await begin_poll(self.catalog, due, until=now + timedelta(seconds=POLL_LEASE_S))
        if poll is None:
            return
        watch = poll.watch
        try:
            sighting = compare_response(watch.status, await self._fetch(poll), now=now)
        except (UpstreamError, NotFound, SecretUnreadable) as error:
            sighting = failed_sighting(watch.status, error.message, now=now)
        if sighting.changed_at == now:
            await publish_updates(poll.tenant, self.catalog, [watch.uri])
            log.info("watch_changed", tenant_id=poll.tenant, watch=watch.id)
        await end_poll(self.catalog, poll, sighting, again_at=now + pause(watch, sighting))

    async def _fetch(self, poll: Poll) -> FullResponse:
        watch = poll.watch
        if not poll.is_known:
            raise NotFound("the tenant no longer has this resource")
        if poll.origins is not None and not is_among(watch.url, poll.origins):
            raise EgressDenied("The tenant's policy does not allow requests to this origin.")
        request = make_request(watch)
        if watch.credential is not None:
            stored_credential = await self.named(poll.tenant, watch.credential)
            if stored_credential is None or not is_among(watch.url, stored_credential.origins):
                raise CredentialMissing("The credential is not stored for this origin.")
            request = with_credential(request, stored_credential)
        # guard: egress-tenant-of-each-request
        return await self.upstream.send_full(request, tenant=poll.tenant, limit_bytes=MAX_WATCHED_BYTES)


def make_request(watch: Watch) -> UpstreamRequest:
    """Return the request of a poll.

    It is conditional if the last complete response had an `ETag` or `Last-Modified`.
    """
    headers = (("Accept", "*/*"), *condition_headers(watch.status))
    return UpstreamRequest(method="GET", url=watch.url, headers=headers, idempotent=True)


def compare_response(before: Sighting, response: FullResponse, *, now: datetime) -> Sighting:
    """Return the result of a poll; `changed_at` is set to `now` if the body differs from the previous body."""
    if response.status == NOT_MODIFIED and before.digest is not None:
        return replace(before, failures=0, fault=None, checked_at=now)
    if not _OK <= response.status < _REDIRECTS:
        is_redirect = _REDIRECTS <= response.status < _ERRORS and response.status != NOT_MODIFIED
        hint = "; redirects are not followed" if is_redirect else ""
        return failed_sighting(before, f"the URL responded with status {response.status}{hint}", now=now)
    digest = hashlib.sha256(response.body).digest()
    is_other = before.digest is not None and before.digest != digest
    return Sighting(
        etag=validator_of(response, "etag"),
        last_modified=validator_of(response, "last-modified"),
        digest=digest,
        checked_at=now,
        changed_at=now if is_other else before.changed_at,
    )


def failed_sighting(before: Sighting, why: str, *, now: datetime) -> Sighting:
    """Return the result of a failed poll, which keeps the state of the last successful poll."""
    return replace(before, failures=before.failures + 1, fault=why[:MAX_FAULT_LENGTH], checked_at=now)


def pause(watch: Watch, seen: Sighting) -> timedelta:
    """Return the time until the next poll of a watch."""
    interval = timedelta(seconds=watch.interval_s)
    return poll_delay(interval, failures=seen.failures, max_delay=timedelta(seconds=MAX_BACKOFF_S))
