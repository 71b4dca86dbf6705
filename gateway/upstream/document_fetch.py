"""Fetch of a document by URL over the upstream client: complete and within its size limit, or an error."""

from yarl import URL

from gateway.domain.http.requests import UpstreamRequest
from gateway.domain.identifiers import TenantId
from gateway.errors import DocumentTooLarge, FetchFailed, UpstreamAnswerTooLarge
from gateway.upstream.client import UpstreamClient

_ACCEPT = "application/json, application/yaml, */*;q=0.5"
_OK = 200


async def fetch_document(upstream: UpstreamClient, url: str, *, limit: int, tenant: TenantId | None = None) -> bytes:
    """Return the bytes at an http or https URL.

    Raises:
        FetchFailed: not such a URL, one with a user name, or the status is not 200; redirects are not followed.
        DocumentTooLarge: the declared length or the decompressed document exceeds `limit` bytes.
        UpstreamError, Unavailable: as for `UpstreamClient.send`.
    """
    request = UpstreamRequest(method="GET", url=_read_url(url), headers=(("Accept", _ACCEPT),), idempotent=True)
    try:
        answer = await upstream.send(request, tenant=tenant, limit_bytes=limit)
    except UpstreamAnswerTooLarge:
        raise DocumentTooLarge(f"The document has more than {limit} bytes.") from None
    if 300 <= answer.status < 400:
        raise FetchFailed(
            f"The document URL responded with a redirect (status {answer.status}), which is not followed; give the "
            f"URL of the document itself."
        )
    if answer.status != _OK:
        raise FetchFailed(f"The document URL responded with status {answer.status}.")
    return answer.body


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
        raise FetchFailed("The document URL must not hold a user name or password.")
    return sent
