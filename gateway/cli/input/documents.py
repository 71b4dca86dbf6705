"""The argument SPEC: a file, an archive, standard input or a URL, as a field of an import request."""

import base64
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject
from gateway.cli.input.limits import MAX_ARCHIVE_BYTES
from gateway.openapi.document.limits import MAX_DOCUMENT_BYTES

_STANDARD_INPUT = "-"
_ARCHIVE_MAGIC = (b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b")
_TAR_MAGIC = b"ustar"
_TAR_MAGIC_OFFSET = 257


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentArgument:
    """A document for an import request: its text, its archive, or the URL from which the gateway fetches it."""

    name: str
    text: str | None = None
    url: str | None = None
    archive: bytes | None = None
    entry: str | None = None

    def fields(self) -> JsonObject:
        """Return the field of the request that contains the document."""
        if self.url is not None:
            return {"url": self.url}
        if self.archive is not None:
            entry: JsonObject = {} if self.entry is None else {"entry": self.entry}
            return {"archive": {"base64": base64.b64encode(self.archive).decode("ascii"), **entry}}
        return {"document": self.text or ""}


def read_document(spec: str, *, entry: str | None = None) -> DocumentArgument:
    """Read the document that SPEC names. A URL is fetched by the gateway, which applies its egress rules.

    `entry` is the path of the root document in an archive.

    Raises:
        Failure: the document cannot be read, is empty or too large, or is neither UTF-8 text nor an archive. Or `entry`
            is given without an archive.
    """
    if spec.lower().startswith(("http://", "https://")):
        found = DocumentArgument(name=spec, url=spec)
    elif spec == _STANDARD_INPUT:
        found = _document(name_of(spec), sys.stdin.buffer.read(MAX_DOCUMENT_BYTES + 1))
    else:
        found = _document(spec, _read(Path(spec)))
    if entry is not None and found.archive is None:
        raise Failure(f"--entry is only for archives; {found.name} is not one", ExitCode.USAGE)
    return replace(found, entry=entry)


def name_of(spec: str) -> str:
    """Return the name of SPEC for messages."""
    return "standard input" if spec == _STANDARD_INPUT else spec


def is_archive(raw: bytes) -> bool:
    """True if the bytes begin as an archive does."""
    return raw.startswith(_ARCHIVE_MAGIC) or raw[_TAR_MAGIC_OFFSET:].startswith(_TAR_MAGIC)


def source_name(spec: str) -> str:
    """Derive a name for the source, and for the server in a client's list, from SPEC."""
    stem = Path(urlsplit(spec).path).name.split(".")[0]
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:32].strip("-") or "api"


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror or error}", ExitCode.USAGE) from None


def _document(name: str, raw: bytes) -> DocumentArgument:
    is_packed = is_archive(raw)
    limit = MAX_ARCHIVE_BYTES if is_packed else MAX_DOCUMENT_BYTES
    if len(raw) > limit:
        raise Failure(f"{name} has more than {limit // 1024 // 1024} MiB", ExitCode.FAILED)
    return (
        DocumentArgument(name=name, archive=raw) if is_packed else DocumentArgument(name=name, text=_decode(name, raw))
    )


def _decode(name: str, raw: bytes) -> str:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Failure(f"{name} is not UTF-8 text (byte {error.start})", ExitCode.FAILED) from None
    if not text.strip():
        raise Failure(f"{name} is empty", ExitCode.FAILED)
    return text
