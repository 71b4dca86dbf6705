"""Readiness of this process to receive requests."""

from collections.abc import Callable


class Readiness:
    """Drain state: set at the first sign of the end, so that a load balancer stops sending before connections close."""

    def __init__(self) -> None:
        self.is_draining = False
        self._farewells: list[Callable[[], None]] = []

    def before_closing(self, farewell: Callable[[], None]) -> None:
        """Register a callback for the start of the drain, while connections are still open."""
        self._farewells.append(farewell)

    def step_down(self) -> None:
        """Report that no more requests should be sent; requests that still arrive are served."""
        self.is_draining = True

    def drain(self) -> None:
        """Start the drain and run the callbacks, once."""
        self.is_draining = True
        farewells, self._farewells = self._farewells, []
        for farewell in farewells:
            farewell()
