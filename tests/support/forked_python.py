"""`python -c`, run by a fork of a process that has imported the gateway (`python_template.py`).

The command `forked_python.py SOCKET [options] -c CODE [arguments]` is one that a fresh interpreter understands.
"""

import contextlib
import json
import os
import signal
import socket
import sys

_NUMBER = 4


def main(path: str, arguments: list[str]) -> int:
    """The exit status of the fork."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the fork has it too
    files = [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208  # `pathlib` is imported longer than the rest runs
    files = [number for number in files if _is_open(number)]
    request = {
        "arguments": arguments[arguments.index("-c") :],
        "variables": dict(os.environ),
        "folder": os.getcwd(),  # noqa: PTH109
        "files": files,
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as template:
        template.connect(path)
        socket.send_fds(template, [json.dumps(request).encode()], files)
        for number in files:
            if number != 2:
                os.close(number)  # its end is seen where the fork has closed it
        with contextlib.suppress(ConnectionError):
            if reported := template.recv(_NUMBER):
                status = int.from_bytes(reported, "big", signed=True)
                return status if status >= 0 else 128 - status
    return 1


def _is_open(number: int) -> bool:
    """False for the file that the listing itself has opened."""
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    os._exit(main(sys.argv[1], sys.argv[2:]))
