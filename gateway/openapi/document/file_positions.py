"""The positions of a bundled document's values in the files of its archive, for reports.

The archive is unpacked and bundled again for the first position, because few documents need one and the files of all
documents would take memory until the end of the import.
"""

from collections.abc import Callable, Sequence
from urllib.parse import unquote, urlsplit

from gateway.domain.json_access import point
from gateway.openapi.document.archive import unpack
from gateway.openapi.document.bundle import BundleLocation, find_positions


class FilePositions:
    """The positions in one archive; `url` is the address of its root document `entry` if the files were fetched."""

    def __init__(self, packed: bytes, *, entry: str | None, url: str | None) -> None:
        self._packed = packed
        self._entry = entry
        parts = urlsplit(url or "")
        is_fetched = entry is not None and unquote(parts.path).strip("/") == entry
        host = parts.netloc.rpartition("@")[2]
        self._base = f"{parts.scheme}://{host}/" if is_fetched else ""
        self._find: Callable[[Sequence[str]], BundleLocation] | None = None

    def __call__(self, path: Sequence[str]) -> str:
        """Return the position of a value as its file or URL, `#`, and a JSON Pointer."""
        if self._find is None:
            self._find = find_positions(unpack(self._packed), entry=self._entry)
        location = self._find(path)
        return f"{self._base}{location.file}#{point(*location.tokens)}"
