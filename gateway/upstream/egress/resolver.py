"""DNS resolution. The egress guard checks the resolved addresses."""

import asyncio
import socket
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from gateway.domain.fairness.thread_kinds import NAME_LOOKUPS
from gateway.domain.fairness.threads import thread_pool
from gateway.errors import LimitExceeded


class Lookup(Protocol):
    """Resolves a name to all its addresses; raises OSError if there is none."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses as text, in the order to try them."""
        ...


class SystemLookup:
    """The operating system's resolver on its own threads, so that slow lookups do not delay other threaded work.

    Lookups of one name are single-flight, so an unresponsive name server occupies one thread per name. Names in one
    domain (two labels) occupy at most a quarter of the threads, because they may share a name server.
    """

    def __init__(self) -> None:
        self._asked: dict[str, asyncio.Future[list[str]]] = {}

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a name; a numeric spelling such as 0x7f000001 resolves to the address it denotes.

        Raises:
            OSError: the name has no address, or too many lookups are running.
        """
        running = self._asked.get(host)
        if running is None:
            domain, slot_pool = _domain_of(host), thread_pool(NAME_LOOKUPS).slot_pool  # guard: share-of-lookups
            try:
                await slot_pool.take(domain)
            except LimitExceeded as error:
                raise OSError(error.message) from None
            running = self._asked.get(host)  # started while this call waited
            if running is not None:
                slot_pool.free(domain)
                return await asyncio.shield(running)
            running = self._ask(host, port, domain)
        return await asyncio.shield(running)

    def _ask(self, host: str, port: int, domain: str) -> "asyncio.Future[list[str]]":
        """Start the lookup in a thread; its slot is held until the lookup ends, even if all callers are cancelled."""
        running = thread_pool(NAME_LOOKUPS).start(domain, partial(_ask_system, host, port))
        self._asked[host] = running

        def end(ended: "asyncio.Future[list[str]]") -> None:
            self._asked.pop(host, None)
            # retrieves the exception, because asyncio logs unretrieved ones
            if not ended.cancelled():
                ended.exception()

        running.add_done_callback(end)
        return running


def _domain_of(host: str) -> str:
    """Return the last two labels of a name."""
    return ".".join(host.rstrip(".").lower().rsplit(".", 2)[-2:])


def _ask_system(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except ValueError:  # a label is too long, or the text is not a name
        raise OSError("the name cannot be resolved") from None
    return list(dict.fromkeys(str(info[4][0]) for info in found))
