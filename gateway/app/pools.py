"""The interface of bounded pools, for metrics."""

from typing import Protocol


class Pool(Protocol):
    """A bounded pool of this replica."""

    @property
    def name(self) -> str:
        """A plural noun."""
        ...

    @property
    def refused(self) -> int:
        """The number of requests that got no slot, or of entries that were not queued."""
        ...

    @property
    def busy(self) -> int:
        """The number of slots in use, or of waiting entries."""
        ...
