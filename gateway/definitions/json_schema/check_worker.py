"""Child process that checks values against schemas (`python -I -m gateway.definitions.json_schema.check_worker`).

It serves one tenant: it reads a task with the definition and the value, writes the violations, and waits for the next
task. Memory is limited before the first definition is read, and CPU time for each task. A process whose memory has
grown ends after its response.
"""

import gc
import os
import sys
from functools import lru_cache
from typing import BinaryIO

import msgspec

from gateway.definitions.json_schema.validator import Validator
from gateway.domain.json_text import decode_json
from gateway.errors import Fault
from gateway.sandbox.frames import LENGTH_BYTES, read_frame, write_frame
from gateway.sandbox.rlimits import isolate, limit, limit_request, peak_bytes

OUT_OF_MEMORY = 3

_NICENESS = 10
"""Niceness of the process, so that it yields the CPU to the replica that started it."""

_KEPT_VALIDATORS = 4
_GROWN = 2
"""A process ends when its peak memory exceeds its limit divided by this: the next large value might not fit."""


class CheckTask(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the process, the schema to check against, and the length of the definition; the value follows."""

    memory_bytes: int
    cpu_s: float
    member: str
    definition_bytes: int


class CheckResult(msgspec.Struct, frozen=True):
    """The violations; empty for a value that conforms."""

    faults: tuple[Fault, ...]


decode_result = msgspec.json.Decoder(CheckResult).decode
_encode_task = msgspec.json.Encoder().encode
_decode_task = msgspec.json.Decoder(CheckTask).decode


def frame_parts(task: CheckTask, definition: bytes, instance: bytes) -> tuple[bytes, ...]:
    """Return the parts of the frame that requests a check."""
    head = _encode_task(task)
    return len(head).to_bytes(LENGTH_BYTES, "big"), head, definition, instance


def main() -> None:
    """Serve tasks until the input ends; the exit status is `OUT_OF_MEMORY` after a `MemoryError`."""
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer)
    except MemoryError:
        sys.exit(OUT_OF_MEMORY)


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer each frame with the violations that it asks for."""
    isolate()
    os.nice(_NICENESS)
    gc.freeze()  # the modules never become garbage
    while (frame := read_frame(source)) is not None:
        start = LENGTH_BYTES + int.from_bytes(frame[:LENGTH_BYTES], "big")
        task = _decode_task(frame[LENGTH_BYTES:start])
        limit(memory_bytes=task.memory_bytes)  # guard: child-memory
        limit_request(task.cpu_s)  # guard: child-cpu-time
        end = start + task.definition_bytes
        raw = frame[end:]
        found = _validator(frame[start:end], task.member).check_unbounded(decode_json(raw), raw)
        write_frame(sink, msgspec.json.encode(CheckResult(found)))
        limit_request(0)
        if peak_bytes() > task.memory_bytes // _GROWN:
            return
        gc.collect()


_validator = lru_cache(_KEPT_VALIDATORS)(Validator)


if __name__ == "__main__":
    main()
