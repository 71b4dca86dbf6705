"""Has a worker forked on this process's streams, and ends as it does: `python -I -S worker_launcher.py SOCKET MODULE`.

It imports nothing of ours and no site packages, so it starts in a tenth of the time of a worker.
"""

import os
import socket
import sys


def main(path: str, module: str) -> None:
    """Hand over stdin and stdout, then wait for the exit status."""
    with socket.socket(socket.AF_UNIX) as template:
        template.connect(path)
        socket.send_fds(template, [module.encode()], [0, 1])
        os.close(0)  # the worker has them now: its end has to be the end of the stream
        os.close(1)
        status = int(template.recv(16) or b"1")
    if status < 0:
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
