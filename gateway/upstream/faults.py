"""What the client library's exceptions mean in our words.

Their texts hold addresses, URLs and header values: nothing of them is passed on, only what kind of failure it was.
"""

import ssl

import aiohttp
from aiohttp.http_exceptions import ContentLengthError, HttpProcessingError, TransferEncodingError

from gateway.errors import (
    EgressDenied,
    UpstreamAnswerBroken,
    UpstreamError,
    UpstreamTimeout,
    UpstreamUnreachable,
)

FAULTS = (aiohttp.ClientError, HttpProcessingError, OSError, RuntimeError, ValueError)
"""Everything that a request may end with, apart from our own errors and cancellation."""

_REASONS: tuple[tuple[type[Exception], type[UpstreamError], str], ...] = (
    (aiohttp.ConnectionTimeoutError, UpstreamTimeout, "The upstream did not accept a connection in time."),
    (TimeoutError, UpstreamTimeout, "The upstream did not answer in time."),
    (aiohttp.ClientConnectorDNSError, UpstreamUnreachable, "The upstream's name does not resolve to an address."),
    (ssl.SSLError, UpstreamUnreachable, "The upstream's TLS handshake or certificate was not accepted."),
    (aiohttp.ClientSSLError, UpstreamUnreachable, "The upstream's TLS handshake or certificate was not accepted."),
    (aiohttp.ClientConnectorError, UpstreamUnreachable, "No connection to the upstream could be made."),
    (aiohttp.ServerDisconnectedError, UpstreamUnreachable, "The upstream closed the connection without an answer."),
    (aiohttp.ClientOSError, UpstreamUnreachable, "The connection to the upstream broke."),
    (OSError, UpstreamUnreachable, "The connection to the upstream broke."),
    (ValueError, EgressDenied, "The upstream's URL is not one that this gateway may dial."),  # such as port 99999
    (RuntimeError, UpstreamUnreachable, "The connection to the upstream broke."),
)


def translate(error: Exception) -> UpstreamError:
    """Our error for one of theirs; whatever is not a failure of the connection is an answer that is not HTTP."""
    for kind, ours, message in _REASONS:
        if isinstance(error, kind):
            return ours(message)
    if isinstance(error, aiohttp.ClientPayloadError) and _broke_off(error):
        return UpstreamUnreachable("The upstream broke the connection inside its answer.")
    return UpstreamAnswerBroken("The upstream's answer is not valid HTTP.")


def _broke_off(error: aiohttp.ClientPayloadError) -> bool:
    """Whether a body ended early, rather than being malformed."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ContentLengthError | OSError):
            return True
        if isinstance(seen, TransferEncodingError):
            return "Not enough data" in seen.message
        seen = seen.__cause__
    return False
