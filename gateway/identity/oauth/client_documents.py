"""Client ID metadata documents: the client id is the https URL of a JSON document with the client's metadata.

A document is fetched through the guarded client, with limits on size and time and without redirects. Documents are
cached for ten minutes, failures for half a minute. Fetches are limited per tenant in rate and concurrency.
"""

import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast
from urllib.parse import urlsplit

import anyio
import msgspec

from gateway.domain.fairness.fair_cache import FairCache
from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import ClientRefused
from gateway.domain.tenancy.grants import ClientKind, OAuthClient
from gateway.domain.tenancy.redirect_uris import MAX_REDIRECT_URIS, fault_of
from gateway.errors import DocumentTooLarge, FetchFailed, LimitExceeded, UpstreamError
from gateway.identity.local_token_buckets import TokenBuckets
from gateway.upstream.client import UpstreamClient
from gateway.upstream.document_fetch import fetch_document

MAX_NAME_LENGTH = 200
_MAX_URL_LENGTH = 300
_LIMIT_BYTES = 32 * 1024
_FETCH_S = 5.0
_CACHE_S, _FAILURE_CACHE_S = 600.0, 30.0
_CAPACITY = 4096
_RATE, _BURST = 1.0, 30.0
"""Fetch rate and burst of one tenant; cached documents do not count."""
_URL = re.compile(r"https://[a-z0-9.-]+(?::[0-9]{1,5})?(/[A-Za-z0-9._~!$&'()*+,;=:@-]+)+/?")
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class ClientDocuments:
    """Fetches metadata documents, and caches them on this replica."""

    def __init__(self, upstream: UpstreamClient) -> None:
        self._upstream = upstream
        self._held = FairCache[str, tuple[float, OAuthClient | ClientRefused]](_CAPACITY)
        self._rates = TokenBuckets(rate=_RATE, burst=_BURST)
        self.slot_pool = FairSlotPool("fetches of client documents", slots=16, queue=64)

    async def find(self, tenant: TenantId, url: str) -> OAuthClient:
        """Return the client whose metadata document is at this URL.

        Raises:
            ClientRefused: the document is missing or invalid.
            LimitExceeded: the tenant fetches too many documents.
        """
        held = self._held.get(tenant, url)
        if held is None or held[0] <= time.monotonic():
            async with self.slot_pool.hold(tenant):
                held = self._held.get(tenant, url)  # another request may have fetched it
                if held is None or held[0] <= time.monotonic():
                    held = await self._fetch(tenant, url)
        found = held[1]
        if isinstance(found, ClientRefused):
            raise ClientRefused(found.message)
        return found

    async def _fetch(self, tenant: TenantId, url: str) -> tuple[float, OAuthClient | ClientRefused]:
        if wait_s := self._rates.take(tenant):  # guard: client-documents-rate
            raise LimitExceeded(
                "too many client documents are fetched for this tenant; retry later", retry_after_s=wait_s
            )
        found: OAuthClient | ClientRefused
        try:
            with anyio.fail_after(_FETCH_S):  # guard: client-document-time
                # guard: client-document-size
                body = await fetch_document(self._upstream, url, limit=_LIMIT_BYTES, tenant=tenant)
            found = read_document(url, body)
        except ClientRefused as refused:
            found = refused
        except TimeoutError:
            found = ClientRefused("The client's metadata document did not arrive in time.")
        except (FetchFailed, UpstreamError, DocumentTooLarge) as error:
            found = ClientRefused(f"The client's metadata document cannot be read. {error.message}")
        life_s = _FAILURE_CACHE_S if isinstance(found, ClientRefused) else _CACHE_S
        held = time.monotonic() + life_s, found
        self._held.put(tenant, url, held)
        return held


def is_document_url(client_id: str) -> bool:
    """True if a client id is an https URL with a path, in a canonical form that no other spelling is equivalent to."""
    if len(client_id) > _MAX_URL_LENGTH or not _URL.fullmatch(client_id):
        return False
    return not {".", ".."} & set(urlsplit(client_id).path.split("/"))


def read_document(url: str, body: bytes) -> OAuthClient:
    """Parse a metadata document.

    Raises:
        ClientRefused: the document is for another client id, or requires an unsupported feature.
    """
    try:
        members = _decode(body)
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
        kind=ClientKind.DOCUMENT,
        name=read_name(members, urlsplit(url).netloc),
        redirect_uris=read_redirect_uris(members),
        created_at=datetime.now(UTC),
    )


def _is_public(members: Mapping[str, Any]) -> bool:
    """True if the client can do without authentication, so that its codes are bound by PKCE alone."""
    supported = members.get("token_endpoint_auth_methods_supported")
    return "none" in (
        members.get("token_endpoint_auth_method", "none"),
        *(supported if type(supported) is list else ()),
    )


def read_name(members: Mapping[str, Any], default: str) -> str:
    """Return the client name of the metadata, truncated to `MAX_NAME_LENGTH`."""
    name = members.get("client_name")
    return name.strip()[:MAX_NAME_LENGTH] or default if isinstance(name, str) else default


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
