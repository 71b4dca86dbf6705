"""Forks the workers of gateways under test, which it has imported: `python -m tests.support.worker_template SOCKET`.

A worker imports for a quarter of a second before it reads its task, and the tests start thousands. Each connection is
one launcher (`worker_launcher.py`), which sends its streams and the name of a module. It ends when stdin does.
"""

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys

MODULES = ("gateway.openapi.worker", "gateway.definitions.json_schema.check_worker")
_STREAMS = 2
_LONGEST_NAME = 256


def main(path: str) -> None:
    """Fork a supervisor for each launcher."""
    for module in MODULES:
        importlib.import_module(module)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors are not waited for
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        print("ready", flush=True)
        while sys.stdin.fileno() not in select.select([listener.fileno(), sys.stdin.fileno()], [], [])[0]:
            launcher, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                os._exit(_supervise(launcher))
            launcher.close()


def _supervise(launcher: socket.socket) -> int:
    """Fork the worker, report its exit status, and kill it when the launcher is killed."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    name, streams, _, _ = socket.recv_fds(launcher, _LONGEST_NAME, _STREAMS)
    worker = os.fork()
    if worker == 0:
        launcher.close()
        _work(name.decode(), streams)
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(worker)
    if ended not in select.select([ended, launcher.fileno()], [], [])[0]:
        os.kill(worker, signal.SIGKILL)
    _, status = os.waitpid(worker, 0)
    with contextlib.suppress(BrokenPipeError):
        launcher.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    return 0


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
