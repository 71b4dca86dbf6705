"""Readiness of this process to receive requests."""

from collections.abc import Callable


class Readiness:
    """Drain state. It is set before connections close, so that a load balancer stops sending requests in time."""

    def __init__(self) -> None:
        self.is_draining = False
        self._callbacks: list[Callable[[], None]] = []

    def before_closing(self, callback: Callable[[], None]) -> None:
        """Register a callback for the start of the drain, when connections are still open."""
        self._callbacks.append(callback)

    def begin_drain_notice(self) -> None:
        """Mark the replica as draining for `/readyz`; requests that still arrive are served."""
        self.is_draining = True

    def drain(self) -> None:
        """Start the drain and run each callback once."""
        self.is_draining = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()
