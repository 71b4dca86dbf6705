"""Encoder of PNG pictures from pixels (PNG 1.2, RFC 2083)."""

import struct
import zlib
from collections.abc import Callable

Colour = tuple[int, int, int]


def draw_png(width: int, height: int, colour_at: Callable[[int, int], Colour]) -> bytes:
    """Encode the picture as a file: 8 bits each for red, green and blue of a pixel."""
    rows = b"".join(b"\0" + b"".join(bytes(colour_at(x, y)) for x in range(width)) for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in chunks)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
