"""What it means for a person that a request got no answer."""

import httpx

from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure

_NEXT = "is it running? `gateway serve` starts one; --url or GATEWAY_URL says where it is"


def unanswered(url: str, error: httpx.TransportError) -> Failure:
    """The failure that names the URL, and what to try where nobody listens there."""
    if isinstance(error, httpx.TimeoutException):
        return Failure(f"{url} did not answer in time", ExitCode.UNREACHABLE)
    said = f"cannot reach {url}: {error or type(error).__name__}"
    return Failure(f"{said}; {_NEXT}" if isinstance(error, httpx.ConnectError) else said, ExitCode.UNREACHABLE)
