"""Whether this process should be sent requests."""


class Readiness:
    """False from the first sign of the end, so that a load balancer looks elsewhere before connections close."""

    def __init__(self) -> None:
        self.is_draining = False
