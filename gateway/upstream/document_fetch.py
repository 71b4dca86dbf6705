"""Fetch of a document by URL with the upstream client, complete and within a size limit."""

from dataclasses import dataclass, field

from yarl import URL

from gateway.domain.http.requests import UpstreamRequest
from gateway.domain.identifiers import TenantId
from gateway.domain.updates.watches import Sighting
from gateway.errors import DocumentTooLarge, FetchFailed, UpstreamAnswerTooLarge
from gateway.upstream.client import UpstreamClient
from gateway.upstream.conditional_requests import NOT_MODIFIED, condition_headers, validator_of
from gateway.upstream.limits import FETCH_RETRY_S

_ACCEPT = "application/json, application/yaml, */*;q=0.5"
_OK = 200
_TEMPORARY = frozenset({408, 425, 429})
"""Statuses below 500 after which a later request may succeed."""
_NO_VALIDATORS = Sighting()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedDocument:
    """A document with its validators; `is_modified` is False after status 304, without a body."""

    body: bytes = field(repr=False, default=b"")
    etag: str | None = None
    last_modified: str | None = None
    is_modified: bool = True


async def fetch_document(upstream: UpstreamClient, url: str, *, limit: int, tenant: TenantId | None = None) -> bytes:
    """Return the bytes at an http or https URL.

    Raises:
        FetchFailed, DocumentTooLarge, UpstreamError, Unavailable: as for `fetch_changed`.
    """
    return (await fetch_changed(upstream, url, limit=limit, tenant=tenant)).body


async def fetch_changed(
    upstream: UpstreamClient, url: str, *, limit: int, tenant: TenantId | None = None, seen: Sighting = _NO_VALIDATORS
) -> FetchedDocument:
    """Return the document at an http or https URL; the body is empty if it is unchanged since `seen`.

    Raises:
        FetchFailed: the URL is invalid or has a user name, or the status is not 200; redirects are not followed. The
            error has a retry hint if the status is temporary.
        DocumentTooLarge: the declared length or the decompressed document exceeds `limit` bytes.
        UpstreamError, Unavailable: as for `UpstreamClient.send`.
    """
    headers = (("Accept", _ACCEPT), *condition_headers(seen))
    request = UpstreamRequest(method="GET", url=_read_url(url), headers=headers, idempotent=True)
    try:
        response = await upstream.send_full(request, tenant=tenant, limit_bytes=limit)
    except UpstreamAnswerTooLarge:
        raise DocumentTooLarge(f"The document has more than {limit} bytes.") from None
    # Without a stored document, 304 answers a request that had no condition: a fault of the server.
    if response.status == NOT_MODIFIED and seen.digest is not None:
        return FetchedDocument(etag=seen.etag, last_modified=seen.last_modified, is_modified=False)
    if 300 <= response.status < 400:
        raise FetchFailed(
            f"The document URL responded with a redirect (status {response.status}), which is not followed; give the "
            f"URL of the document itself."
        )
    if response.status != _OK:
        raise _failure(response.status)
    return FetchedDocument(
        body=response.body,
        etag=validator_of(response, "etag"),
        last_modified=validator_of(response, "last-modified"),
    )


def _failure(status: int) -> FetchFailed:
    retry_after_s = FETCH_RETRY_S if status >= 500 or status in _TEMPORARY else None
    return FetchFailed(f"The document URL responded with status {status}.", retry_after_s=retry_after_s)


def _read_url(text: str) -> str:
    """Return the URL in wire form: ASCII host, percent-encoded, no fragment. The egress guard checks it later."""
    try:
        url = URL(text.strip())
        has_user = url.user is not None or url.password is not None
        is_web = url.scheme in {"http", "https"} and bool(url.host)
        sent = str(url.with_fragment(None))
    except ValueError:
        raise FetchFailed("The document URL is invalid.") from None
    if not is_web:
        raise FetchFailed("The document URL must start with http:// or https:// and name a host.")
    if has_user:
        raise FetchFailed("The document URL must not contain a user name or password.")
    return sent
