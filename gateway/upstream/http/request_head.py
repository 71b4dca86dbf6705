"""Serialization of request heads (RFC 9112 sections 2 and 3) from validated parts.

Host, User-Agent and Accept-Encoding come first. The request may replace the User-Agent, but not the other two.
"""

from gateway.domain.http.headers import is_token
from gateway.domain.http.requests import UpstreamRequest
from gateway.errors import UpstreamUnreachable
from gateway.upstream.decompression import ACCEPTED
from gateway.upstream.egress.origins import Origin
from gateway.upstream.serialize.header_checks import is_header_value, is_sendable_header

_AGENT = "User-Agent: mcp-gateway\r\n"
_ACCEPTED = f"Accept-Encoding: {ACCEPTED}\r\n"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Common methods, which skip the check."""
_FRAMED = frozenset({"CONNECT", "HEAD"})
"""Methods with different response framing."""
_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods that send no Content-Length without a body; others send a length of 0 (RFC 9110 section 8.6)."""


def check_method(method: str) -> str:
    """Return the method, whose case is preserved.

    Raises:
        UpstreamUnreachable: the method is not a token, is CONNECT, or is HEAD in another case, with undefined framing.
    """
    if method not in _METHODS and (not is_token(method) or method.upper() in _FRAMED):
        raise UpstreamUnreachable("The request has a method that cannot be sent.")
    return method


def write_head(request: UpstreamRequest, method: str, origin: Origin, target: str) -> bytes:
    """Return the bytes of the request line and all headers.

    Raises:
        UpstreamUnreachable: a header may not be sent by callers, or its value is invalid.
    """
    agent, lines = _AGENT, ""
    for name, value in request.headers:
        if not is_sendable_header(name) or not is_header_value(value):  # guard: header-framing
            raise UpstreamUnreachable("The request has a header that cannot be sent.")
        if len(name) == 10 and name.lower() == "user-agent":
            agent = f"{name}: {value}\r\n"
        else:
            lines += f"{name}: {value}\r\n"
    body = request.body
    if body is not None:
        lines += f"Content-Length: {len(body)}\r\n"
    elif method not in _WITHOUT_BODY:
        lines += "Content-Length: 0\r\n"
    return f"{method} {target} HTTP/1.1\r\nHost: {origin.authority}\r\n{agent}{_ACCEPTED}{lines}\r\n".encode("ascii")
