"""A worker's link to its supervisor: metrics of all workers, their number, and the request to drain."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from gateway.app.workers.channel import MessageKind, WorkerChannel
from gateway.app.workers.limits import ANSWER_S

Render = Callable[[], str]
Request = Callable[[], None]


class Siblings:
    """The other workers of this machine, as the supervisor describes them."""

    def __init__(self, channel: WorkerChannel) -> None:
        self._channel = channel
        self._render: Render = str
        self._waiting: list[asyncio.Future[str]] = []
        self.serving = 0
        """Workers that serve."""
        self.configured = 0

    @property
    def are_complete(self) -> bool:
        """True if every configured worker serves."""
        return self.serving >= self.configured

    def follow(self, render: Render) -> None:
        """Report the page that `render` returns."""
        self._render = render

    async def collect(self) -> str:
        """Return the metrics of all workers on one page; after 4 s, that of this worker alone."""
        asked: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting.append(asked)
        self._channel.send(MessageKind.COLLECT)
        with suppress(TimeoutError):
            return await asyncio.wait_for(asked, 2 * ANSWER_S)
        return self._render()

    def report(self) -> None:
        """Send the metrics of this worker."""
        self._channel.send(MessageKind.REPORT, page=self._render())

    async def run(self, drain: Request, hasten: Request) -> None:
        """Respond to the supervisor until it ends; its end is a request to drain."""
        while (message := await self._channel.receive()) is not None:
            match message["kind"]:
                case MessageKind.EXAMINE:
                    self.report()
                case MessageKind.COLLECTED:
                    self._resolve(message["page"])
                case MessageKind.WORKERS:
                    self.serving, self.configured = message["serving"], message["configured"]
                case MessageKind.DRAIN:
                    drain()
                case MessageKind.HASTEN:
                    hasten()
                case _:
                    continue
        drain()

    def _resolve(self, page: str) -> None:
        waiting, self._waiting = self._waiting, []
        for asked in waiting:
            if not asked.done():
                asked.set_result(page)
