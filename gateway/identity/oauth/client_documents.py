"""Client ID metadata documents: the client id is the https URL of a JSON document with the client's metadata.

A document is fetched through the guarded client, with limits on size and time and without redirects. Documents are
cached for ten minutes, failures for half a minute. While its host is unavailable, a cached document is used for a day.

Fetches are limited in rate and concurrency. Clients that people of the tenant use have limits apart from others, whose
ids any caller can invent; those are also limited per client network. So a flood of invented ids delays no known client.
"""

import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit

import anyio
import msgspec

from gateway.domain.fairness.fair_cache import FairCache
from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.identifiers import TenantId
from gateway.domain.json_text import decode_object
from gateway.domain.refusals import ClientRefused
from gateway.domain.tenancy.grants import ClientKind, ClientStatus, OAuthClient
from gateway.domain.tenancy.limits import MAX_REDIRECT_URIS
from gateway.domain.tenancy.redirect_uris import fault_of
from gateway.errors import (
    DocumentTooLarge,
    EgressDenied,
    FetchFailed,
    GatewayError,
    LimitExceeded,
    Unavailable,
    UpstreamError,
)
from gateway.identity.local_token_buckets import TokenBuckets
from gateway.identity.oauth.limits import (
    DOCUMENT_FETCH_S,
    DOCUMENT_FRESH_S,
    DOCUMENT_RETRY_S,
    DOCUMENT_STALE_S,
    MAX_CLIENT_DOCUMENT_BYTES,
    MAX_CLIENT_ID_LENGTH,
    MAX_CLIENT_NAME_LENGTH,
    MAX_DOCUMENTS,
    MAX_FAILED_DOCUMENTS,
    MAX_FETCHES,
)
from gateway.identity.single_flight import SingleFlight
from gateway.upstream.client import UpstreamClient
from gateway.upstream.document_fetch import fetch_document

_RATE, _BURST = 1.0, 30.0
"""Fetch rate and burst of one tenant, for known clients and for others; cached documents do not count."""
_NETWORK_RATE, _NETWORK_BURST = 0.25, 8.0
"""Fetch rate and burst of one client network at one tenant, for clients that are not known."""
_URL = re.compile(r"https://[a-z0-9.-]+(?::[0-9]{1,5})?(/[A-Za-z0-9._~!$&'()*+,;=:@-]+)+/?")

FindKnown = Callable[[TenantId, str], Awaitable[bool]]
"""Returns True for a client that a person of the tenant has authorized."""


@dataclass(slots=True)
class _CachedDocument:
    """The client of a document, the time of its fetch, and the time of the next one."""

    client: OAuthClient
    fetched_at: float
    due_at: float


class ClientDocuments:
    """Fetches metadata documents, and caches them on this replica."""

    def __init__(self, upstream: UpstreamClient, is_known: FindKnown) -> None:
        self._upstream = upstream
        self._is_known = is_known
        self._held = FairCache[str, _CachedDocument](MAX_DOCUMENTS)
        self._failures = FairCache[str, tuple[float, GatewayError]](MAX_FAILED_DOCUMENTS)
        self._flights = SingleFlight[tuple[str, str, str], OAuthClient](Unavailable, at_once=MAX_FETCHES)
        self._known_rates = TokenBuckets(rate=_RATE, burst=_BURST)
        self._rates = TokenBuckets(rate=_RATE, burst=_BURST)
        self._network_rates = TokenBuckets(rate=_NETWORK_RATE, burst=_NETWORK_BURST)
        self._known_pool = FairSlotPool("fetches of known client documents", slots=16, queue=64)
        self._pool = FairSlotPool("fetches of client documents", slots=16, queue=64)

    @property
    def slot_pools(self) -> tuple[FairSlotPool, FairSlotPool]:
        """The slots of fetches, for known clients and for others."""
        return self._known_pool, self._pool

    async def find(self, tenant: TenantId, url: str, *, network: str) -> OAuthClient:
        """Return the client whose metadata document is at this URL, for a request from a client network.

        Raises:
            ClientRefused: the document is missing or invalid.
            LimitExceeded: the tenant or the network fetches too many documents.
            Unavailable: the document cannot be fetched now.
        """
        if (client := self._cached(tenant, url)) is not None:
            return client
        held = self._held.get(tenant, url)
        try:
            return await self._flights.take((tenant, url, network), partial(self._renew, tenant, url, network))
        except (LimitExceeded, Unavailable):
            if held is None or time.monotonic() - held.fetched_at > DOCUMENT_STALE_S:  # guard: client-document-stale
                raise
            return held.client

    def _cached(self, tenant: TenantId, url: str) -> OAuthClient | None:
        """Return the client of a fresh document; raise the cached failure; None if a fetch is due."""
        held, failure, now = self._held.get(tenant, url), self._failures.get(tenant, url), time.monotonic()
        if held is not None and held.due_at > now:
            return held.client
        if failure is not None and failure[0] > now:
            raise failure[1].with_traceback(None)
        return None

    async def _renew(self, tenant: TenantId, url: str, network: str) -> OAuthClient:
        is_known = await self._is_known(tenant, url)
        pool = self._known_pool if is_known else self._pool  # guard: known-client-documents-slots
        async with pool.hold(tenant):
            if (client := self._cached(tenant, url)) is not None:  # a request of another network has fetched it
                return client
            self._limit_rate(tenant, network, is_known=is_known)
            try:
                client = await self._fetch(tenant, url)
            except (ClientRefused, Unavailable) as error:
                self._note_failure(tenant, url, error)
                raise
            now = time.monotonic()
            self._held.put(tenant, url, _CachedDocument(client, now, now + DOCUMENT_FRESH_S))
            return client

    def _limit_rate(self, tenant: TenantId, network: str, *, is_known: bool) -> None:
        if is_known:  # guard: known-client-documents-rate
            wait_s = self._known_rates.take(tenant)
        else:
            # guard: client-documents-network-rate
            wait_s = self._network_rates.take(f"{tenant} {network}") or self._rates.take(tenant)
        if wait_s:  # guard: client-documents-rate
            raise LimitExceeded(
                "too many client documents are fetched for this tenant; retry later", retry_after_s=wait_s
            )

    def _note_failure(self, tenant: TenantId, url: str, error: ClientRefused | Unavailable) -> None:
        """Cache a failure; a document that was refused is not used any more."""
        held, retry_at = self._held.get(tenant, url), time.monotonic() + DOCUMENT_RETRY_S
        if isinstance(error, ClientRefused):
            self._held.drop(tenant, url)  # guard: client-document-withdrawn
        elif held is not None:
            held.due_at = min(retry_at, held.fetched_at + DOCUMENT_STALE_S)
        self._failures.put(tenant, url, (retry_at, error))

    async def _fetch(self, tenant: TenantId, url: str) -> OAuthClient:
        try:
            with anyio.fail_after(DOCUMENT_FETCH_S):  # guard: client-document-time
                # guard: client-document-size
                body = await fetch_document(self._upstream, url, limit=MAX_CLIENT_DOCUMENT_BYTES, tenant=tenant)
        except TimeoutError:
            reason = "The client's metadata document did not arrive in time; retry later."
            raise Unavailable(reason, retry_after_s=DOCUMENT_RETRY_S) from None
        except (UpstreamError, DocumentTooLarge) as error:
            reason = f"The client's metadata document cannot be read. {error.message}"
            if _is_final(error):
                raise ClientRefused(reason) from None
            raise Unavailable(reason, retry_after_s=DOCUMENT_RETRY_S) from None
        return read_document(url, body)


def _is_final(error: UpstreamError | DocumentTooLarge) -> bool:
    """True if the host has no usable document at this URL, rather than being unavailable."""
    if isinstance(error, FetchFailed):
        return error.retry_after_s is None
    return isinstance(error, DocumentTooLarge | EgressDenied)


def is_document_url(client_id: str) -> bool:
    """True if a client id is an https URL with a path, in a canonical form that no other spelling is equivalent to."""
    if len(client_id) > MAX_CLIENT_ID_LENGTH or not _URL.fullmatch(client_id):
        return False
    return not {".", ".."} & set(urlsplit(client_id).path.split("/"))


def read_document(url: str, body: bytes) -> OAuthClient:
    """Parse a metadata document.

    Raises:
        ClientRefused: the document is for another client id, or requires an unsupported feature.
    """
    try:
        members = decode_object(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ClientRefused("The client's metadata document is no JSON object.") from None
    if members.get("client_id") != url:  # guard: client-document-own
        raise ClientRefused("The client's metadata document is of another client: its client_id is not its URL.")
    if not _is_public(members) or "client_secret" in members:
        raise ClientRefused(
            "The client's metadata document demands an authentication that is not supported. Supported is none, as"
            " token_endpoint_auth_method or in token_endpoint_auth_methods_supported, without a client_secret."
        )
    return OAuthClient(
        id=url,
        name=read_name(members, urlsplit(url).netloc),
        redirect_uris=read_redirect_uris(members),
        created_at=datetime.now(UTC),
        status=ClientStatus(kind=ClientKind.DOCUMENT),
    )


def _is_public(members: Mapping[str, Any]) -> bool:
    """True if the client can do without authentication, so that its codes are bound by PKCE alone."""
    supported = members.get("token_endpoint_auth_methods_supported")
    return "none" in (
        members.get("token_endpoint_auth_method", "none"),
        *(supported if type(supported) is list else ()),
    )


def read_name(members: Mapping[str, Any], default: str) -> str:
    """Return the client name of the metadata, truncated to `MAX_CLIENT_NAME_LENGTH`."""
    name = members.get("client_name")
    return name.strip()[:MAX_CLIENT_NAME_LENGTH] or default if isinstance(name, str) else default


def read_redirect_uris(members: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the redirect URIs of a client's metadata.

    Raises:
        ClientRefused: the list is missing, too long, or contains an invalid URI.
    """
    given = members.get("redirect_uris")
    several = cast("list[object]", given) if isinstance(given, list) else []
    uris = tuple(each for each in several if isinstance(each, str))
    if not 0 < len(several) <= MAX_REDIRECT_URIS or len(uris) != len(several):
        raise ClientRefused(f"The client's metadata must have 1 to {MAX_REDIRECT_URIS} redirect_uris.")
    for uri in uris:
        if (fault := fault_of(uri, is_trusted=False)) is not None:  # guard: client-redirect-uris
            raise ClientRefused(f"A redirect URI of the client's metadata {fault}.")
    return uris
