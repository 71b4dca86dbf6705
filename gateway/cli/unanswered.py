"""Failures of requests that received no response."""

import httpx

from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure

_NEXT = "is it running? `gateway serve` starts one; set its address with --url or GATEWAY_URL"


def unanswered(url: str, error: httpx.TransportError) -> Failure:
    """Return the failure. The message names the URL, and a remedy if no connection could be opened."""
    if isinstance(error, httpx.TimeoutException):
        return Failure(f"{url} did not answer in time", ExitCode.UNREACHABLE)
    message = f"cannot reach {url}: {error or type(error).__name__}"
    return Failure(f"{message}; {_NEXT}" if isinstance(error, httpx.ConnectError) else message, ExitCode.UNREACHABLE)
