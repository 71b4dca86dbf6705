"""Transport faults between a request and its response, and their translation into gateway errors.

A fault has no message, so that no address, header value or library message reaches a caller.
"""

from gateway.errors import (
    EgressDenied,
    UpstreamAnswerBroken,
    UpstreamError,
    UpstreamTimeout,
    UpstreamUnreachable,
)


class TransportFault(Exception):
    """The request received no complete response."""


class NotConnected(TransportFault):
    """No connection was established, so nothing was sent."""


class NameUnknown(NotConnected):
    """The name of the upstream has no address."""


class ConnectedLate(NotConnected):
    """No connection was established or released in time."""


class DistrustedTls(TransportFault):
    """The TLS handshake failed or the certificate is invalid; nothing was sent."""


class Disconnected(TransportFault):
    """The connection closed before a response; the request may have arrived."""


class Torn(Disconnected):
    """The connection was reset before a response; the request may have arrived."""


class BrokenOff(TransportFault):
    """The connection closed during the response."""


class Malformed(TransportFault):
    """The received bytes are not HTTP/1.1 as defined by RFC 9112, or exceed its limits."""


FAULTS = (TransportFault, OSError, RuntimeError, ValueError)
"""The exceptions that a request may raise, except gateway errors and cancellation."""

_REASONS: tuple[tuple[type[Exception], type[UpstreamError], str], ...] = (
    (ConnectedLate, UpstreamTimeout, "The upstream did not accept a connection in time."),
    (TimeoutError, UpstreamTimeout, "The upstream did not respond in time."),
    (NameUnknown, UpstreamUnreachable, "The upstream's name does not resolve to an address."),
    (DistrustedTls, UpstreamUnreachable, "The upstream's TLS handshake or certificate was not accepted."),
    (NotConnected, UpstreamUnreachable, "No connection to the upstream could be made."),
    (Torn, UpstreamUnreachable, "The connection to the upstream was lost."),
    (Disconnected, UpstreamUnreachable, "The upstream closed the connection without a response."),
    (BrokenOff, UpstreamUnreachable, "The connection was lost before the end of the response."),
    (Malformed, UpstreamAnswerBroken, "The upstream's response is not valid HTTP."),
    (OSError, UpstreamUnreachable, "The connection to the upstream was lost."),
    # e.g. a host name that is invalid for TLS
    (ValueError, EgressDenied, "The gateway must not connect to the upstream's URL."),
)


_UNSENT = (NotConnected, DistrustedTls, ValueError)
_SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "TRACE", "QUERY"))
_MAY_BE_DONE = "The call may have been carried out; check that before you repeat it."


def translate(error: Exception, method: str = "GET") -> UpstreamError:
    """Return the gateway error for a fault of a request; that of an unsafe method that was sent may have been done."""
    known = (reason for reason in _REASONS if isinstance(error, reason[0]))
    _, ours, message = next(known, (Exception, UpstreamUnreachable, "The connection to the upstream was lost."))
    if method not in _SAFE_METHODS and not isinstance(error, _UNSENT):
        message = f"{message} {_MAY_BE_DONE}"
    return ours(message)
