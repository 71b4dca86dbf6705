"""Serves a web application on loopback, in its own thread, while a block runs."""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette


@contextmanager
def serving(app: Starlette, *, port: int) -> Generator[int]:
    """Serve on this port, or on a free one if it is in use; yield the port."""
    with _listen(port) as listener:
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", access_log=False, log_config=None))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="upstream")
        thread.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            server.should_exit = True
            server.force_exit = True  # a slow route must not delay the end
            thread.join()


def _listen(port: int) -> socket.socket:
    for wanted in (port, 0):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", wanted))
            listener.listen()  # from now on clients wait instead of being refused
        except OSError:
            listener.close()
            continue
        return listener
    raise OSError("no port on 127.0.0.1 is free")
