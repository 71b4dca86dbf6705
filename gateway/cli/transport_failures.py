"""Failures of CLI requests that received no response: timeouts and transport errors.

All have the exit code `UNREACHABLE`.
"""

import httpx

from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure

_HINT = "is a gateway running there? Start one with `gateway serve`, or set its address with --url or GATEWAY_URL"


def transport_failure(url: str, error: httpx.TransportError) -> Failure:
    """Return the failure for a transport error. If no connection could be opened, the message has a hint."""
    if isinstance(error, httpx.TimeoutException):
        return Failure(f"{url} did not respond in time", ExitCode.UNREACHABLE)
    message = f"cannot reach {url}: {error or type(error).__name__}"
    return Failure(f"{message}; {_HINT}" if isinstance(error, httpx.ConnectError) else message, ExitCode.UNREACHABLE)
