"""The golden files: one for each surface, with the reader of the tree and the comparison of two forms."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tests.surface import commands, rest, tables
from tests.surface.canonical import Json, write
from tests.surface.differences import Difference

FOLDER = Path(__file__).parent / "golden"


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """One golden file."""

    name: str
    surface: Callable[[], Json]
    """Reads the tree of today."""
    compare: Callable[[Json, Json], Iterator[Difference]]

    @property
    def path(self) -> Path:
        """The file."""
        return FOLDER / self.name

    def load(self) -> Json:
        """Return the form that the file holds."""
        return cast("Json", json.loads(self.path.read_text()))

    def renew(self) -> None:
        """Write the form of today."""
        self.path.write_text(write(self.surface()))

    def differences(self, former: Json | None = None) -> Iterator[Difference]:
        """Yield the differences of today from the file, or from a former form."""
        yield from self.compare(self.load() if former is None else former, self.surface())


GOLDEN = (
    Golden(name="admin-api.json", surface=rest.surface, compare=rest.compare),
    Golden(name="commands.json", surface=commands.surface, compare=commands.compare),
    Golden(name="tables.json", surface=tables.surface, compare=tables.compare),
)
