"""Child process that checks one value against one schema (`python -I -m gateway.definitions.json_schema.check_worker`).

It reads a task, the definition and the value from standard input, and writes the violations to standard output. It
shares no state with other processes. Memory and CPU time are limited before the definition and the value are read.
"""

import os
import sys
from typing import BinaryIO

import msgspec

from gateway.definitions.json_schema.validator import Validator
from gateway.errors import Fault
from gateway.sandbox.rlimits import isolate, limit

LENGTH_BYTES = 4
OUT_OF_MEMORY = 3

_NICENESS = 10
"""Niceness of the process, so that it yields the CPU to the replica that started it."""


class CheckTask(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the process, the schema to check against, and the length of the definition in the rest of the input."""

    memory_bytes: int
    cpu_s: int
    member: str
    definition_bytes: int


class CheckResult(msgspec.Struct, frozen=True):
    """The violations; empty for a value that conforms."""

    faults: tuple[Fault, ...]


encode_task = msgspec.json.Encoder().encode
decode_result = msgspec.json.Decoder(CheckResult).decode
_decode_task = msgspec.json.Decoder(CheckTask).decode


def main() -> None:
    """Run one task; the exit status is `OUT_OF_MEMORY` after a `MemoryError`."""
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer)
    except MemoryError:
        sys.exit(OUT_OF_MEMORY)


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Read one task with its definition and value, and write the violations."""
    isolate()
    task = _decode_task(source.read(int.from_bytes(source.read(LENGTH_BYTES), "big")))
    limit(memory_bytes=task.memory_bytes, cpu_s=task.cpu_s)  # guard: child-memory
    os.nice(_NICENESS)
    definition = source.read(task.definition_bytes)
    raw = source.read()
    found = Validator(definition, task.member).check_unbounded(msgspec.json.decode(raw), raw)
    sink.write(msgspec.json.encode(CheckResult(found)))
    sink.flush()


if __name__ == "__main__":
    main()
