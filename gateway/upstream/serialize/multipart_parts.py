"""Parts of a multipart body with their headers, and a boundary that occurs in none of them (RFC 7578, RFC 2046).

The boundary is derived from the parts, so that equal arguments make equal bytes.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.upstream.serialize.percent_encoding import Unwritable, to_bytes

_QUOTED = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})
_BOUNDARY_BYTES = 16


@dataclass(frozen=True, slots=True)
class BodyPart:
    """One part: its name, bytes, media type and file name, and further headers."""

    name: str | None
    content: bytes
    media_type: str | None = None
    filename: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


def assemble(parts: Sequence[BodyPart], essence: str) -> tuple[bytes, str]:
    """Join the parts into one body; return its bytes and content type.

    Raises:
        Unwritable: a name has a control character, or a header a lone surrogate.
    """
    heads = [_head(part) for part in parts]
    boundary = _boundary(heads, parts)
    mark = b"--" + boundary.encode()
    pieces: list[bytes] = []
    for head, part in zip(heads, parts, strict=True):
        pieces += [mark, b"\r\n", head, b"\r\n", part.content, b"\r\n"]
    pieces += [mark, b"--\r\n"]
    return b"".join(pieces), f"{essence}; boundary={boundary}"


def _head(part: BodyPart) -> bytes:
    lines: list[str] = []
    if part.name is not None:
        disposition = f'Content-Disposition: form-data; name="{_quoted(part.name)}"'
        lines.append(disposition if part.filename is None else f'{disposition}; filename="{_quoted(part.filename)}"')
    elif part.filename is not None:
        lines.append(f'Content-Disposition: attachment; filename="{_quoted(part.filename)}"')
    if part.media_type is not None:
        lines.append(f"Content-Type: {part.media_type}")
    lines += [f"{name}: {value}" for name, value in part.headers]
    return to_bytes("".join(f"{line}\r\n" for line in lines))


def _quoted(text: str) -> str:
    """A name as browsers write it (HTML, multipart/form-data encoding algorithm)."""
    quoted = text.translate(_QUOTED)
    if any(character < " " or character == "\x7f" for character in quoted):
        raise Unwritable("a name has a control character")
    return quoted


def _boundary(heads: Sequence[bytes], parts: Sequence[BodyPart]) -> str:
    digest = hashlib.blake2b(digest_size=_BOUNDARY_BYTES)
    for head, part in zip(heads, parts, strict=True):
        digest.update(len(head).to_bytes(8, "big") + len(part.content).to_bytes(8, "big") + head)
        digest.update(part.content)
    boundary = digest.hexdigest()
    while any(boundary.encode() in piece for piece in (*heads, *(part.content for part in parts))):
        boundary = hashlib.blake2b(boundary.encode(), digest_size=_BOUNDARY_BYTES).hexdigest()
    return boundary
