"""How a name becomes addresses; which of them may be dialled is for the guard."""

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from gateway.domain.fairness.share import FairShare
from gateway.errors import LimitExceeded

_THREADS = 32
_WAITING = 1024


class Lookup(Protocol):
    """Asks the name system for every address of a name; raises OSError when there is none."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """The addresses, as text, in the order to try them."""
        ...

    def close(self) -> None:
        """Nothing more will be asked."""
        ...


class SystemLookup:
    """The operating system's resolver, on threads of its own: slow names must not hold up file or other work.

    However many want a name at once, it is asked for once: a name system that does not answer holds one thread. The
    names below one domain hold a quarter of the threads, because one silent name server answers for all of them.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="lookup")
        self._asked: dict[str, asyncio.Future[list[str]]] = {}
        self.places = FairShare("name lookups", places=_THREADS, queue=_WAITING)

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a name; numeric spellings such as 0x7f000001 come back as the address they mean."""
        running = self._asked.get(host)
        if running is None:
            domain = _domain_of(host)
            try:
                await self.places.take(domain)
            except LimitExceeded as error:
                raise OSError(error.message) from None
            running = self._asked.get(host)  # asked for while this one waited
            if running is not None:
                self.places.free(domain)
                return await asyncio.shield(running)
            running = self._ask(host, port, domain)
        return await asyncio.shield(running)

    def _ask(self, host: str, port: int, domain: str) -> "asyncio.Future[list[str]]":
        """Ask in a thread, which holds its place until the name system has answered."""
        running = asyncio.get_running_loop().run_in_executor(self._threads, _ask_system, host, port)
        self._asked[host] = running

        def end(_: object) -> None:
            self._asked.pop(host, None)
            self.places.free(domain)

        running.add_done_callback(end)
        return running

    def close(self) -> None:
        """Forget queued questions; a running one ends with its thread."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _domain_of(host: str) -> str:
    """The last two labels of a name."""
    return ".".join(host.rstrip(".").lower().rsplit(".", 2)[-2:])


def _ask_system(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except ValueError:  # a label too long, or not a name at all
        raise OSError("the name cannot be resolved") from None
    return list(dict.fromkeys(str(info[4][0]) for info in found))
