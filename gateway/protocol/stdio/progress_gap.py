"""A pause between the last progress notification of a request and its response, on stdio.

A client that reads both lines at once may handle the response first. The TypeScript SDK does, and reports the
progress as an error; some of its users then close the connection (modelcontextprotocol/typescript-sdk#2580).
"""

import time

import anyio

from gateway.protocol.stdio.limits import GAP_S


class ProgressGap:
    """The pause of one request."""

    def __init__(self) -> None:
        self._ends_at = 0.0

    def note(self) -> None:
        """Begin the pause: progress was written."""
        self._ends_at = time.monotonic() + GAP_S

    async def wait(self) -> None:
        """Wait for the rest of the pause."""
        if (left_s := self._ends_at - time.monotonic()) > 0:
            await anyio.sleep(left_s)
