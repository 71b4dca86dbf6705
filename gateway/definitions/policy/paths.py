"""Containment of a path in a folder, decided by its text without file system access, so links and mounts are
unknown.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from gateway.definitions.policy.limits import MAX_DECODINGS, MAX_PATH_LENGTH

_SUFFIX = re.compile(r"[?#].*", re.DOTALL)
_PARAMETERS = re.compile(r";[^/]*")
_ROOT = re.compile(r"/|(/[^/\\%;?#\x00-\x20\x7f]+)+/?")


def is_root(text: str) -> bool:
    """True if conditions can compare with this folder: absolute, normalised, without characters that are decoded."""
    return _ROOT.fullmatch(text) is not None and not _is_unclear(text) and unicodedata.is_normalized("NFKC", text)


def is_inside(path: str, root: str) -> bool | None:
    """Return True if the path is in the folder `root` or is the folder itself; None if this is not decidable.

    All readings of the path must agree: unchanged; percent-decoded, also repeatedly; with backslashes as slashes; with
    compatibility characters and letter case folded; without query, fragment or path parameters. A path that is
    relative, has a `..` segment or a control character in any reading is not decidable.
    """
    if len(path) > MAX_PATH_LENGTH:
        return None
    readings = set(_readings(path))
    if any(_is_unclear(reading) for reading in readings):  # guard: path-unclear
        return None
    folded = _fold(root)
    found = {_contains(root, reading) for reading in readings} | {
        _contains(folded, _fold(reading)) for reading in readings
    }
    return found.pop() if len(found) == 1 else None  # guard: path-readings


def readings_of_uri(uri: str) -> Sequence[str]:
    """Return the possible readings of a caller's URI by a receiver, including the URI itself."""
    return tuple({form for text in _readings(uri) for form in (text, _resolve(text))})


def _resolve(uri: str) -> str:
    """Return the URI without empty and dot segments in its path."""
    *authority, path = uri.split("/", 3)
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in {"", "."}:
            kept.append(segment)
    return "/".join((*authority, *kept))


def _readings(path: str) -> Iterator[str]:
    """Yield the possible readings of the path by a receiver."""
    for decoded in _decodings(path):
        for text in {decoded, unicodedata.normalize("NFKC", decoded)}:
            slashed = text.replace("\\", "/")
            yield from (text, slashed, _SUFFIX.sub("", slashed), _PARAMETERS.sub("", slashed))


def _decodings(path: str) -> Iterator[str]:
    """Yield the path and its repeated percent-decodings until nothing changes; after too many, an unclear path."""
    for _ in range(MAX_DECODINGS):
        yield path
        decoded = unquote(path, errors="surrogateescape")
        if decoded == path:
            return
        path = decoded
    yield ""


def _is_unclear(text: str) -> bool:
    """True if the path is relative, begins with `//`, or has a control character or a segment of dots."""
    if not text.startswith("/") or text.startswith("//"):
        return True
    if any(unicodedata.category(character)[0] == "C" for character in text):
        return True
    return any(_is_dots(segment) for segment in text.split("/"))


def _is_dots(segment: str) -> bool:
    """True for `..` and forms that some systems treat as `..`: further dots, trailing spaces, a path parameter."""
    bare = segment.partition(";")[0].strip(" ")
    return len(bare) > 1 and not bare.strip(". ")


def _contains(root: str, path: str) -> bool:
    folder, segments = _segments(root), _segments(path)
    return segments[: len(folder)] == folder


def _segments(path: str) -> list[str]:
    return [segment for segment in path.split("/") if segment not in {"", "."}]


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
