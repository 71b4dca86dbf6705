"""The pause between progress and response on standard streams."""

import time

from gateway.protocol.stdio.limits import GAP_S
from gateway.protocol.stdio.progress_gap import ProgressGap


async def test_a_response_waits_until_its_progress_was_read() -> None:
    """MCP: a client that reads the last progress and the response at once may report the progress as an error."""
    gap = ProgressGap()
    started = time.monotonic()
    gap.note()

    await gap.wait()

    assert time.monotonic() - started >= GAP_S / 2  # a timer may end some milliseconds early
