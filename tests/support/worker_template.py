"""Forks the workers of gateways under test, which it has imported: `python -m tests.support.worker_template SOCKET`.

A worker imports for a quarter of a second before it reads its task, and the tests start thousands. Its first document
also compiles patterns and fills caches, which takes 9 ms: the template has read one. Each connection is one worker: its
client (`worker_starts.py`) sends the name of a module with the worker's stdin and stdout, and receives the process id,
then the exit status. A worker whose client is gone is killed. The template ends when its stdin does.
"""

import contextlib
import gc
import importlib
import os
import selectors
import signal
import socket
import sys
from pathlib import Path

MODULES = ("gateway.openapi.worker", "gateway.definitions.json_schema.check_worker", "gateway.calls.result_worker")
NUMBER = 4
"""Bytes of a process id and of an exit status, which is signed: negative for a signal."""

_STREAMS = 2
_MAX_NAME_LENGTH = 256
_DOCUMENT = Path(__file__).parents[2] / "examples" / "library" / "openapi.yaml"


def main(path: str) -> None:
    """Fork a worker for each connection."""
    for module in MODULES:
        importlib.import_module(module)
    _read_document()
    gc.collect()
    gc.freeze()
    with selectors.DefaultSelector() as events, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        events.register(sys.stdin, selectors.EVENT_READ)
        events.register(listener, selectors.EVENT_READ)
        print("ready", flush=True)
        while True:
            for key, _ in events.select():
                if key.fileobj is sys.stdin:
                    return
                if key.fileobj is listener:
                    _fork(listener, events)
                elif events.get_map().get(key.fd) is key:  # else its worker has been reported in this turn
                    _end(key, events)


def _read_document() -> None:
    from gateway.openapi.compiler import compile_document  # noqa: PLC0415  # the client imports this module
    from gateway.openapi.options import ImportOptions  # noqa: PLC0415

    compile_document(_DOCUMENT.read_bytes(), ImportOptions())


def _fork(listener: socket.socket, events: selectors.BaseSelector) -> None:
    """Start a worker, and watch both it and its client."""
    client, _ = listener.accept()
    name, streams, _, _ = socket.recv_fds(client, _MAX_NAME_LENGTH, _STREAMS)
    worker = os.fork()
    if worker == 0:
        _work(name.decode(), streams)
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(worker)
    with contextlib.suppress(BrokenPipeError):
        client.sendall(worker.to_bytes(NUMBER, "big"))
    for watched in (client, ended):
        events.register(watched, selectors.EVENT_READ, (worker, client, ended))


def _end(key: selectors.SelectorKey, events: selectors.BaseSelector) -> None:
    """Report the exit status of a worker that has ended, or kill one whose client is gone."""
    worker, client, ended = key.data
    if key.fileobj is client:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
    _, status = os.waitpid(worker, 0)
    with contextlib.suppress(BrokenPipeError):
        client.sendall(os.waitstatus_to_exitcode(status).to_bytes(NUMBER, "big", signed=True))
    for watched in (client, ended):
        events.unregister(watched)
    client.close()
    os.close(ended)


def _work(module: str, streams: list[int]) -> None:
    """Become the worker."""
    status = 1
    try:
        os.setsid()
        os.chdir("/")
        os.environ.clear()
        os.environ["LANG"] = "C.UTF-8"
        for number, stream in enumerate((*streams, os.open(os.devnull, os.O_WRONLY))):
            os.dup2(stream, number)
        sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
        sys.modules[module].main()
        sys.stdout.flush()
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    finally:
        os._exit(status)


if __name__ == "__main__":
    main(sys.argv[1])
