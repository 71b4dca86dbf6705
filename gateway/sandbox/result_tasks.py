"""Tasks on large results: pure functions that run in a thread, or in a child process that can be killed (decision 65).

A task has one function for both: from its head, a small value, and the body to its answer. The child reads frames of
`gateway.sandbox.frames`: the length of the task's name and head, both as JSON, then the body. It responds with a mark
and the answer, or the error of the function, as MessagePack.
"""

import gc
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, Generic, TypeVar

import msgspec

from gateway.errors import ArgumentsInvalid, Fault, GatewayError, HandlerFailed
from gateway.sandbox.frames import LENGTH_BYTES, read_frame, write_frame
from gateway.sandbox.rlimits import isolate, limit, limit_request, peak_bytes

OUT_OF_MEMORY: Final = 3
"""Exit status of a child process without memory."""

_NICENESS = 10
_GROWN = 2
"""A process ends when its peak memory exceeds its limit divided by this: the next large value might not fit."""
_ANSWER, _FAILURE = b"\0", b"\1"
_ERRORS: Final[Mapping[str, type[GatewayError]]] = {error.code: error for error in (HandlerFailed, ArgumentsInvalid)}

_Head = TypeVar("_Head")
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class ResultTask(Generic[_Head, _Answer]):
    """One task; its function may raise HandlerFailed and ArgumentsInvalid."""

    name: str
    run: Callable[[_Head, bytes], _Answer]
    head: type[_Head]
    answer: type[_Answer]


class _TaskHead(msgspec.Struct, frozen=True):
    name: str
    memory_bytes: int
    cpu_s: float
    head: msgspec.Raw


class _Failure(msgspec.Struct, frozen=True):
    code: str
    message: str
    faults: tuple[Fault, ...] = ()


_read_head = msgspec.json.Decoder(_TaskHead).decode
_read_failure = msgspec.msgpack.Decoder(_Failure).decode


def write_task(
    task: ResultTask[_Head, Any], head: _Head, body: bytes, *, memory_bytes: int, cpu_s: float
) -> tuple[bytes, ...]:
    """Return the parts of the frame that requests a task within these limits."""
    encoded = msgspec.json.encode(_TaskHead(task.name, memory_bytes, cpu_s, msgspec.Raw(msgspec.json.encode(head))))
    return len(encoded).to_bytes(LENGTH_BYTES, "big"), encoded, body


def read_answer(task: ResultTask[Any, _Answer], response: bytes) -> _Answer:
    """Return the answer in a response, or raise the error of the task's function."""
    mark, content = response[:1], memoryview(response)[1:]
    if mark == _FAILURE:
        failure = _read_failure(content)
        raise _ERRORS[failure.code](failure.message, faults=failure.faults)
    return msgspec.msgpack.decode(content, type=task.answer)


def serve(tasks: Mapping[str, ResultTask[Any, Any]], source: BinaryIO, sink: BinaryIO) -> None:
    """Respond to each frame until the input ends; for the child process."""
    isolate()
    os.nice(_NICENESS)
    gc.freeze()  # the modules never become garbage
    while (frame := read_frame(source)) is not None:
        start = LENGTH_BYTES + int.from_bytes(frame[:LENGTH_BYTES], "big")
        found = _read_head(frame[LENGTH_BYTES:start])
        limit(memory_bytes=found.memory_bytes)  # guard: result-child-memory
        limit_request(found.cpu_s)  # guard: result-child-cpu-time
        body = frame[start:]
        del frame
        task = tasks[found.name]
        try:
            response = _ANSWER + msgspec.msgpack.encode(task.run(msgspec.json.decode(found.head, type=task.head), body))
        except GatewayError as error:
            response = _FAILURE + msgspec.msgpack.encode(_Failure(error.code, error.message, error.faults))
        write_frame(sink, response)
        limit_request(0)
        if peak_bytes() > found.memory_bytes // _GROWN:
            return
        del body, response
        gc.collect()
