"""Secrets of manifests: references to variables and files of this machine, which are read for a request only.

A manifest and a plan hold the reference; no output holds the value.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, is_object, to_list
from gateway.cli.manifests.files import is_inside
from gateway.cli.manifests.limits import MAX_PATH_LENGTH, MAX_SECRET_BYTES
from gateway.cli.manifests.places import ManifestFaults, Place
from gateway.errors import Fault

ENV, FILE = "env", "file"
CREDENTIALS = "credentials"
"""The member of sources with several secrets, which are given together."""
FORM = "must be {env: NAME} or {file: PATH}; a manifest holds no secret"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
_LEAST_REDACTED = 4
"""Characters of the shortest secret that output is searched for: a shorter one is part of many words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSecret:
    """A reference to a variable or a file of this machine, and the place that refers to it."""

    place: Place
    pointer: str
    env: str = ""
    file: Path | None = None

    def reference(self) -> JsonObject:
        """The reference for a plan, whose paths are relative to the current folder."""
        return {ENV: self.env} if self.file is None else {FILE: os.path.relpath(self.file)}

    def read(self) -> str:
        """Read the value.

        Raises:
            ValueError: the variable is not set, or the file is not a small regular file of UTF-8 text.
        """
        if self.file is None:
            if found := os.environ.get(self.env):
                return found
            raise ValueError(f"the variable {self.env} is not set or is empty")
        try:
            text = _read_regular(self.file).decode("utf-8").strip()
        except OSError as error:
            raise ValueError(f"{os.path.relpath(self.file)} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ValueError(f"{os.path.relpath(self.file)} is not UTF-8 text") from None
        if not text:
            raise ValueError(f"{os.path.relpath(self.file)} is empty")
        return text


def _read_regular(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe would wait for a writer
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # guard: manifest-secret-regular
            raise OSError(0, "it is not a regular file")
        raw = file.read(MAX_SECRET_BYTES + 1)
    if len(raw) > MAX_SECRET_BYTES:  # guard: manifest-secret-bytes
        raise OSError(0, f"a secret has at most {MAX_SECRET_BYTES // 1024} KiB")
    return raw


def find_secret(value: object, place: Place, pointer: str, *, leaves_folder: bool) -> LocalSecret:
    """Parse a reference; no file is read.

    Raises:
        ValueError: it has another form, or its path leads out of the folder. The message does not repeat the value.
    """
    if not is_object(value) or len(value) != 1:  # guard: manifest-secret-literal
        raise ValueError(FORM)
    name, target = next(iter(value.items()))
    if name == ENV and isinstance(target, str) and _VARIABLE.fullmatch(target):
        return LocalSecret(place=place, pointer=pointer, env=target)
    if name != FILE or not isinstance(target, str) or not 0 < len(target) <= MAX_PATH_LENGTH or "\0" in target:
        raise ValueError(FORM)
    path = place.folder / target
    if not leaves_folder and not is_inside(path, place.root):  # guard: manifest-secret-traversal
        raise ValueError(f"the path leads out of {place.root}; --allow-outside permits it")
    return LocalSecret(place=place, pointer=pointer, file=path)


@dataclass(slots=True)
class SecretValues:
    """The values of one run: each is read once, and is redacted in all messages of the gateway."""

    _values: dict[str, str] = field(default_factory=dict[str, str], repr=False)

    def read(self, secrets: Iterable[LocalSecret], faults: ManifestFaults) -> None:
        """Read the values; those that cannot be read are faults."""
        for one in secrets:
            key = str(one.reference())
            if key in self._values:
                continue
            try:
                self._values[key] = one.read()
            except ValueError as error:
                faults.add([one.place.fault(one.pointer, str(error))])

    def fill(self, value: object) -> object:
        """Return the JSON value with the values in place of the references; a secret that was not read is absent."""
        return _map_leaves(self._without_unread(value), self._value_of)

    def _without_unread(self, value: object) -> object:
        """The value without credentials of sources of which one was not read: a part of them is not valid."""
        if is_object(value):
            pairs = ((name, each) for name, each in value.items() if name != CREDENTIALS or self._is_read(each))
            return {name: self._without_unread(each) for name, each in pairs}
        items = to_list(value)
        return [self._without_unread(each) for each in items] if items else value

    def _is_read(self, value: object) -> bool:
        return all(str(one.reference()) in self._values for one in secrets_in(value))

    def _value_of(self, leaf: object) -> object:
        return self._values.get(str(leaf.reference()), _ABSENT) if isinstance(leaf, LocalSecret) else leaf

    def redact(self, text: str) -> str:
        """Replace the values in a text, such as a message of the gateway."""
        for value in sorted(self._values.values(), key=len, reverse=True):
            if len(value) >= _LEAST_REDACTED:  # guard: manifest-secret-redacted
                text = text.replace(value, "(secret)")
        return text

    def redact_in(self, value: object) -> object:
        """Replace the values in all texts of a JSON value."""
        return _map_leaves(value, lambda leaf: self.redact(leaf) if isinstance(leaf, str) else leaf)

    def redacted(self, failure: Failure) -> Failure:
        """The failure without values."""
        faults = [Fault(pointer=self.redact(one.pointer), reason=self.redact(one.reason)) for one in failure.faults]
        return Failure(self.redact(failure.message), failure.exit_code, faults=faults, retry_s=failure.retry_s)


def references(value: object) -> object:
    """Return the JSON value with references in place of secrets, for a plan."""
    return _map_leaves(value, lambda leaf: leaf.reference() if isinstance(leaf, LocalSecret) else leaf)


def secrets_in(value: object) -> Sequence[LocalSecret]:
    """All references in a JSON value."""
    found: list[LocalSecret] = []

    def keep(leaf: object) -> None:
        if isinstance(leaf, LocalSecret):
            found.append(leaf)

    _map_leaves(value, keep)
    return found


_ABSENT = object()


def _map_leaves(value: object, act: Callable[[object], object]) -> object:
    """Return the JSON value with each text, number and secret replaced; a member for which `act` has none is absent."""
    if is_object(value):
        pairs = ((name, _map_leaves(each, act)) for name, each in value.items())
        return {name: each for name, each in pairs if each is not _ABSENT}
    items = to_list(value)
    return [_map_leaves(each, act) for each in items] if items or value == [] else act(value)
