"""What a person names as SPEC: a file, standard input or a URL, as the field of an import request."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from gateway.cli.exits import Exit
from gateway.cli.failures import Failure

_LIMIT = 32 * 1024 * 1024
_STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document as it goes into an import request: its text, or the URL the gateway fetches it from."""

    name: str
    text: str | None = None
    url: str | None = None

    def fields(self) -> dict[str, str]:
        """The field of the request that carries it."""
        return {"url": self.url} if self.url is not None else {"document": self.text or ""}


def read_document(spec: str) -> Document:
    """The document that SPEC names; a URL is left to the gateway, whose door out is guarded.

    Raises:
        Failure: it cannot be read, is too large, or is no text.
    """
    if spec.lower().startswith(("http://", "https://")):
        return Document(name=spec, url=spec)
    if spec == _STANDARD_INPUT:
        return Document(name="standard input", text=_decode("standard input", sys.stdin.buffer.read(_LIMIT + 1)))
    return Document(name=spec, text=_decode(spec, _read(Path(spec))))


def source_name(spec: str) -> str:
    """A name for the source, and for the server in a client's list, out of what the person typed."""
    stem = Path(urlsplit(spec).path).name.split(".")[0]
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:32].strip("-") or "api"


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_LIMIT + 1)
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror or error}", Exit.USAGE) from None


def _decode(name: str, raw: bytes) -> str:
    if len(raw) > _LIMIT:
        raise Failure(f"{name} has more than {_LIMIT // 1024 // 1024} MiB", Exit.FAILED)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Failure(f"{name} is not UTF-8 text (byte {error.start})", Exit.FAILED) from None
    if not text.strip():
        raise Failure(f"{name} is empty", Exit.FAILED)
    return text
