"""Files of manifests: folders are read recursively and in order, `-` is standard input; all reading is bounded.

Nothing that a folder holds is left out unnoticed, because `--prune` deletes what no manifest names: a link to a folder,
and a link out of the folder, are faults. Hidden entries and files with other endings are no manifests; neither are
documents of sources, which end in `.openapi.yaml`, `.openapi.yml` or `.openapi.json`.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from gateway.cli.input.documents import name_of
from gateway.cli.input.limits import MAX_FILE_BYTES
from gateway.cli.manifests.limits import MAX_BYTES, MAX_ENTRIES, MAX_FILES
from gateway.cli.manifests.places import ManifestFaults, Place

_STANDARD_INPUT = "-"
_ENDINGS = (".yaml", ".yml", ".json")
_DOCUMENTS = tuple(f".openapi{ending}" for ending in _ENDINGS)
"""Endings of documents of sources, which are no manifests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestText:
    """The text of one file."""

    place: Place
    text: str
    is_found: bool
    """True if a folder was named, and not the file itself."""


@dataclass(slots=True, kw_only=True)
class FileReader:
    """Reads the files that `-f` names; what cannot be read is a fault."""

    faults: ManifestFaults
    leaves_folder: bool
    """True if links may lead out of a named folder."""
    most_entries: int = MAX_ENTRIES
    most_files: int = MAX_FILES
    most_file_bytes: int = MAX_FILE_BYTES
    most_bytes: int = MAX_BYTES
    _entries: int = 0
    _files: int = 0
    _bytes: int = 0
    _seen: set[str] = field(default_factory=set[str])

    def read(self, specs: Sequence[str]) -> Iterator[ManifestText]:
        """Yield the texts of files and folders, in the given order; those of a folder by path."""
        for spec in specs:
            path = Path(spec)
            if spec == _STANDARD_INPUT:
                yield from self._read_text(Place(file=name_of(spec)), sys.stdin.buffer, is_found=False)
            elif path.is_dir():
                yield from self._read_folder(path)
            else:
                yield from self._read_file(path, root=None)

    def _read_folder(self, root: Path) -> Iterator[ManifestText]:
        for folder, folders, names in os.walk(root, onerror=self._add_error):
            self._entries += len(folders) + len(names)
            if self._entries > self.most_entries:  # guard: manifest-entries
                self._add(folder, f"more than {self.most_entries:,} entries; name the folder of manifests")
                folders.clear()
                return
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in folders:
                if (path := Path(folder, name)).is_symlink():  # guard: manifest-linked-folders
                    self._add(path, "is a link to a folder, which is not followed; name the folder with -f")
            for name in sorted(names):
                if _is_manifest(name.lower()):
                    yield from self._read_member(Path(folder, name), root)

    def _read_member(self, path: Path, root: Path) -> Iterator[ManifestText]:
        """Read a file of a folder, which may be a link to another file there."""
        if not path.is_file():
            self._add(path, "is not a regular file")
        elif not self.leaves_folder and not is_inside(path, root):  # guard: manifest-links
            self._add(path, f"is a link to a file outside of {root}; --allow-outside permits it")
        else:
            yield from self._read_file(path, root=root)

    def _read_file(self, path: Path, *, root: Path | None) -> Iterator[ManifestText]:
        """Read a file; `root` is the named folder in which it was found."""
        real = os.path.realpath(path)
        if real in self._seen:
            return  # named twice, such as by a folder and by itself
        self._seen.add(real)
        try:
            with path.open("rb") as file:
                place = Place(file=str(path), folder=path.parent, root=root or path.parent)
                yield from self._read_text(place, file, is_found=root is not None)
        except OSError as error:
            self._add_error(error)

    def _read_text(self, place: Place, file: IO[bytes], *, is_found: bool) -> Iterator[ManifestText]:
        """Read a file to its end, within the limits of one file and of all."""
        self._files += 1
        if self._files > self.most_files:  # guard: manifest-files
            if self._files == self.most_files + 1:
                self._add(place.file, f"more than {self.most_files:,} files; this one and later ones were not read")
            return
        left = min(self.most_file_bytes, self.most_bytes - self._bytes)
        raw = file.read(left + 1)
        self._bytes += len(raw)
        if len(raw) > left:  # guard: manifest-bytes
            self._add(place.file, f"is too large; {self._limits}")
            return
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            self._add(place.file, f"is not UTF-8 text (byte {error.start})")
            return
        yield ManifestText(place=place, text=text, is_found=is_found)

    @property
    def _limits(self) -> str:
        return f"a file may have {self.most_file_bytes:,} bytes, and all files {self.most_bytes:,}"

    def _add_error(self, error: OSError) -> None:
        self._add(error.filename, f"cannot be read: {error.strerror or error}")

    def _add(self, path: object, reason: str) -> None:
        self.faults.add([Place(file=str(path)).fault("", reason)])


def _is_manifest(name: str) -> bool:
    return name.endswith(_ENDINGS) and not name.endswith(_DOCUMENTS) and not name.startswith(".")


def is_inside(path: Path, root: Path) -> bool:
    """True if the path, with all links followed, is in the folder."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))
