"""Frames on the pipes of a child process: four bytes of length, then the content. Used by the child's side."""

from typing import BinaryIO

LENGTH_BYTES = 4


def read_frame(source: BinaryIO) -> bytes | None:
    """Return the content of the next frame; None at the end of the input, also within a frame."""
    head = source.read(LENGTH_BYTES)
    length = int.from_bytes(head, "big")
    content = source.read(length)
    return content if len(head) == LENGTH_BYTES and len(content) == length else None


def write_frame(sink: BinaryIO, content: bytes) -> None:
    """Write one frame and flush it."""
    sink.write(len(content).to_bytes(LENGTH_BYTES, "big"))
    sink.write(content)
    sink.flush()
