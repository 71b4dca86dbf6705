"""Whether this process should be sent requests."""

from collections.abc import Callable


class Readiness:
    """False from the first sign of the end, so that a load balancer looks elsewhere before connections close."""

    def __init__(self) -> None:
        self.is_draining = False
        self._farewells: list[Callable[[], None]] = []

    def before_closing(self, farewell: Callable[[], None]) -> None:
        """Have this done when the drain begins, while connections are still open."""
        self._farewells.append(farewell)

    def drain(self) -> None:
        """Begin the end; once."""
        if not self.is_draining:
            self.is_draining = True
            for farewell in self._farewells:
                farewell()
