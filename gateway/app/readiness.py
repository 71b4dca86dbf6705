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

    def step_down(self) -> None:
        """Ask not to be sent requests any more; those that come all the same are served."""
        self.is_draining = True

    def drain(self) -> None:
        """Begin the end; once."""
        self.is_draining = True
        farewells, self._farewells = self._farewells, []
        for farewell in farewells:
            farewell()
