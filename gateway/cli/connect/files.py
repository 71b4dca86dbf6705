"""Changes of a client's file: with a backup, in one step, readable by its owner only where it is new."""

import difflib
import os
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.cli.connect.clients import ConfiguredClient
from gateway.cli.connect.file_formats import Unreadable, servers_in
from gateway.cli.connect.limits import MAX_BYTES
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, is_object

_BACKUP = ".before-gateway"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFile:
    """The file of a client."""

    client: ConfiguredClient
    path: Path

    @property
    def backup(self) -> Path:
        """The copy of the file before the last change."""
        return self.path.with_name(self.path.name + _BACKUP)

    def servers(self) -> JsonObject:
        """Return the configured servers by name.

        Raises:
            Failure: the file cannot be read.
        """
        try:
            return servers_in(self.client.form.read(self._text(self.path)), self.client.members)
        except Unreadable as error:
            raise self._failure(error) from None

    def former(self, name: str) -> JsonObject | None:
        """Return the server of this name in the backup, which is that of the last change."""
        try:
            found = servers_in(self.client.form.read(self._text(self.backup)), self.client.members).get(name)
        except Unreadable:
            return None
        return found if is_object(found) else None

    def changed(self, name: str, entry: JsonObject | None) -> str:
        """Return the text of the file with this server, or without it.

        Raises:
            Failure: the file cannot be read, or something of it would be lost.
        """
        try:
            return self.client.form.write(self._text(self.path), self.client.members, name, entry)
        except Unreadable as error:
            raise self._failure(error) from None

    def difference(self, text: str) -> str:
        """Return the changed lines."""
        lines = (self._text(self.path).splitlines(), text.splitlines())
        return "\n".join(difflib.unified_diff(*lines, str(self.path), str(self.path), lineterm="", n=1))

    def write(self, text: str, *, backs_up: bool = True) -> None:
        """Replace the file in one step, after a backup; a link stays a link.

        Raises:
            Failure: the file cannot be written.
        """
        try:
            place = self.path.resolve()
            place.parent.mkdir(parents=True, exist_ok=True)
            mode = stat.S_IMODE(place.stat().st_mode) if place.exists() else 0o600
            if place.exists() and backs_up:
                replace_file(self.backup, place.read_bytes(), 0o600)
            replace_file(place, text.encode(), mode)
        except OSError as error:
            raise Failure(f"{self.path} cannot be written: {error.strerror}", ExitCode.FAILED) from None

    @contextmanager
    def kept_if_refused(self, name: str) -> Generator[None]:
        """Put back the server of this name as it was if the block fails; what the client wrote meanwhile stays."""
        found = self.servers().get(name)
        before = found if is_object(found) else None
        try:
            yield
        except BaseException:
            if self.servers().get(name) != found:
                self.write(self.changed(name, before), backs_up=False)
            raise

    def _text(self, path: Path) -> str:
        try:
            if not path.exists():
                return ""
            if path.stat().st_size > MAX_BYTES:
                raise Unreadable(f"it has more than {MAX_BYTES:,} bytes")
            return path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise Unreadable(str(error)) from None

    def _failure(self, error: Unreadable) -> Failure:
        return Failure(f"{self.path}: {error}; nothing is changed", ExitCode.FAILED)


def replace_file(path: Path, content: bytes, mode: int) -> None:
    """Write to a file beside it and rename that: a reader sees the former or the new content."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
