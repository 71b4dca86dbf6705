"""Runs a server on standard streams until its client closes them or a signal arrives."""

from functools import partial

import anyio

from gateway.app.exception_leaves import first_leaf
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure, failure_of
from gateway.errors import GatewayError
from gateway.protocol.limits import MAX_BYTES
from gateway.protocol.stdio.running import Serve, serve_streams
from gateway.protocol.stdio.streams import ClaimedStreams, ClientGone, claim_streams
from gateway.telemetry.standard_streams import replace_standard_streams


def claim() -> ClaimedStreams:
    """Claim the standard streams before anything can write to them; the client need not read standard error.

    Raises:
        Failure: there is no standard output.
    """
    try:
        claimed = claim_streams()
    except ClientGone:
        raise Failure("standard output is closed", ExitCode.USAGE) from None
    replace_standard_streams()
    return claimed


def run(claimed: ClaimedStreams, serve: Serve, *, limit: int = MAX_BYTES) -> None:
    """Serve until `serve` returns, or SIGTERM or SIGINT cancels it; a line may have `limit` bytes.

    Raises:
        Failure: the server failed, or could not start.
    """
    try:
        anyio.run(partial(serve_streams, claimed, serve, limit=limit))
    except (GatewayError, BaseExceptionGroup) as error:
        leaf = first_leaf(error, Failure, GatewayError)
        if isinstance(leaf, GatewayError):
            raise failure_of(leaf) from None
        raise leaf if isinstance(leaf, Failure) else Failure(f"unexpected {type(leaf).__name__}: {leaf}") from error
