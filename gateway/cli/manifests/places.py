"""Places of documents in files, and the collector of their faults."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.manifests.limits import MAX_SHOWN_FAULTS
from gateway.errors import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One document of a file; `folder` is that of the file, and no secret is read from outside of `root`."""

    file: str
    number: int = 1
    is_only: bool = True
    folder: Path = Path()
    root: Path = Path()

    def __str__(self) -> str:
        return self.file if self.is_only else f"{self.file}, document {self.number}"

    def fault(self, pointer: str, reason: str) -> Fault:
        """A fault of a member of the document."""
        return Fault(pointer=f"{self}: {pointer}" if pointer else str(self), reason=reason)


@dataclass(frozen=True, slots=True)
class ManifestFaults:
    """The faults of all files of one run, which are reported together."""

    found: list[Fault] = field(default_factory=list[Fault])

    def add(self, faults: Iterable[Fault]) -> None:
        """Collect faults; beyond the limit, none is computed."""
        if len(self.found) <= MAX_SHOWN_FAULTS:
            self.found.extend(islice(faults, MAX_SHOWN_FAULTS + 1 - len(self.found)))

    def check(self) -> None:
        """End the command if there are faults.

        Raises:
            Failure: there are some; it holds all of them, up to a limit.
        """
        count = len(self.found)
        if count > MAX_SHOWN_FAULTS:
            message = f"the manifests have more than {MAX_SHOWN_FAULTS} faults"
        else:
            message = "the manifests have a fault" if count == 1 else f"the manifests have {count} faults"
        if count:
            raise Failure(f"{message}; nothing was sent", ExitCode.USAGE, faults=self.found[:MAX_SHOWN_FAULTS])
