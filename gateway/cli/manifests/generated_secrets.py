"""Secrets that the gateway generates for new objects, which it shows once: in a private file, or on a terminal."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, text_at
from gateway.cli.manifests.members import KIND
from gateway.cli.manifests.tenant_request import objects_of
from gateway.cli.output.printing import echo
from gateway.kinds.kind import Kind
from gateway.kinds.manifests import MANIFEST_KINDS

STANDARD_OUTPUT = "-"
SECRET = "secret"  # noqa: S105 - the name of a member


@dataclass(slots=True, kw_only=True)
class GeneratedSecrets:
    """The secrets of one run. The file is created before anything is applied, and written after each tenant."""

    target: str | None
    """The file, `-` for standard output, or None for a terminal."""
    is_in_report: bool
    """True if the secrets stay in the report, because `--json` prints it to standard output."""
    _found: list[JsonObject] = field(default_factory=list[JsonObject])
    _is_open: bool = False

    def prepare(self, previews: Sequence[JsonObject]) -> None:
        """Make sure that the secrets of new objects have a place that is no log.

        Raises:
            Failure: there is no terminal and no file is given, or the file exists or cannot be created.
        """
        if any(_generates(one) for preview in previews for one in objects_of(preview)):
            self.reserve()

    def reserve(self) -> None:
        """Make sure that new secrets have a place that is no log.

        Raises:
            Failure: there is no terminal and no file is given, or the file exists or cannot be created.
        """
        if self.target is None and not sys.stdout.isatty():  # guard: generated-secrets-in-no-log
            message = "the gateway shows new secrets once, and there is no terminal"
            raise Failure(f"{message}: give --secrets FILE, or --secrets - for standard output", ExitCode.USAGE)
        if self.target not in {None, STANDARD_OUTPUT}:
            self._write(os.O_EXCL)  # guard: generated-secrets-replace-no-file
            self._is_open = True

    def take(self, tenant: str, objects: Sequence[JsonObject]) -> Sequence[JsonObject]:
        """Keep the secrets of objects, and return the objects without them."""
        if self.is_in_report:
            return objects
        new = [
            {"tenant": tenant, KIND: one.get(KIND), "name": one.get("name"), SECRET: one[SECRET]}
            for one in objects
            if one.get(SECRET)
        ]
        self._found += new
        if new and self._is_open:
            self._write(os.O_TRUNC)
        return [{name: value for name, value in one.items() if name != SECRET} for one in objects]

    def finish(self) -> None:
        """Print the secrets that no file has, and remove an empty file."""
        if self._is_open and not self._found and self.target is not None:
            Path(self.target).unlink(missing_ok=True)
        elif self._is_open:
            echo(f"wrote the generated secrets to {self.target}", err=True)
        elif self._found and self.target == STANDARD_OUTPUT:
            echo(json.dumps(self._found, indent=2))
        else:
            for one in self._found:
                name = " ".join(text_at(one, part) for part in ("tenant", KIND, "name"))
                echo(f"secret of {name}, shown once: {text_at(one, SECRET)}")

    def _write(self, flag: int) -> None:
        path = Path(self.target or "")
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | flag, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(self._found, file, indent=2)
                file.write("\n")
        except FileExistsError:
            raise Failure(f"--secrets: {path} exists; nothing was changed", ExitCode.USAGE) from None
        except OSError as error:
            raise Failure(f"--secrets: cannot write {path}: {error.strerror or error}", ExitCode.FAILED) from None


def _generates(one: JsonObject) -> bool:
    kind = MANIFEST_KINDS.get(text_at(one, KIND))
    return text_at(one, "action") == "create" and isinstance(kind, Kind) and bool(kind.generates)
