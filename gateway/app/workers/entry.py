"""Entry of a worker process. The supervisor imports this module alone, and not the modules of a replica."""

import signal
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import anyio

from gateway.app.backends import Backends
from gateway.telemetry.standard_streams import replace_standard_streams


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStart:
    """Arguments of a worker, from its supervisor."""

    number: int
    options: Mapping[str, object]
    """The settings of the command line; the worker reads all others itself, from the environment and from files."""
    port: int
    addresses: Backends = field(repr=False)
    sockets: Sequence[socket.socket]
    control: socket.socket


def run_worker(start: WorkerStart) -> None:
    """Serve in this process until the drain that the supervisor requests has ended."""
    from gateway.app.workers.worker import serve_worker  # noqa: PLC0415  # all modules of a replica, imported already

    for number in (signal.SIGTERM, signal.SIGHUP):  # the fork server ignores them, and programs would inherit that
        signal.signal(number, signal.SIG_DFL)
    replace_standard_streams()
    anyio.run(partial(serve_worker, start), backend_options={"use_uvloop": True})
