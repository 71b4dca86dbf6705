"""The worker process that reads and compiles one document, then exits: `python -I -m gateway.openapi.worker`.

The process reads a task and the document from standard input, and writes the result to standard output. Its limits of
memory and CPU time bound a hostile document. The parent can kill the process at any time, because it shares no state.
"""

import binascii
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import BinaryIO

from gateway.domain.json_text import load_json, refuse_many_values
from gateway.errors import BadInput, DocumentTooLarge, InvalidDocument
from gateway.openapi.compiler import compile_document
from gateway.openapi.document.json_access import quote_text
from gateway.openapi.limits import MAX_BODY_VALUES
from gateway.openapi.operation.example_positions import Origin
from gateway.openapi.review.changes import compare_versions
from gateway.openapi.worker_messages import (
    LENGTH_BYTES,
    Closing,
    Crash,
    Message,
    MissingFiles,
    Task,
    decode_task,
    send_compilation,
    send_document,
    send_refusal,
    write_frame,
)
from gateway.sandbox.rlimits import isolate, limit, peak_bytes

_TRACE_LENGTH = 8_000
_WHITE_SPACE = b" \t\r\n"
_QUOTE = b'"'
_OUT_OF_MEMORY = "Not enough memory"
"""The text that the JSON reader sometimes reports for exhausted memory, as if it were a syntax error."""


def main() -> None:
    """Process one task."""
    serve(sys.stdin.buffer, sys.stdout.buffer, answer)


def serve(source: BinaryIO, sink: BinaryIO, reply: Callable[[Task, bytes], Iterator[Message]]) -> None:
    """Limit the process, read one task and its input, and write the messages of `reply`, then `Closing`."""
    isolate()
    length = int.from_bytes(source.read(LENGTH_BYTES), "big")
    task = decode_task(source.read(length))
    limit(memory_bytes=task.memory_bytes, cpu_s=task.cpu_s)
    sink.writelines(write_frame(message) for message in _guard(task, source, reply))
    sink.write(write_frame(Closing(peak_bytes())))
    sink.flush()


def answer(task: Task, document: bytes) -> Iterator[Message]:
    """Yield the messages for one document.

    Raises:
        InvalidBody: a JSON value violates a rule of request bodies.
        InvalidDocument: the document or archive cannot be read.
        DocumentTooLarge: the document or archive exceeds a limit.
        BadInput: the base URL cannot be used.
    """
    sent, form = document, task.form
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    origin: Origin | None = None
    if form.is_json_value:
        document = _read_value(document)
    if form.is_archive:
        from gateway.openapi.document.archive import unpack  # noqa: PLC0415  # most documents are a single file
        from gateway.openapi.document.bundle import bundle  # noqa: PLC0415
        from gateway.openapi.document.file_positions import FilePositions  # noqa: PLC0415

        packed = _decode(document) if form.is_json_value else document
        bundled = bundle(unpack(packed), entry=form.entry)
        if form.lists_missing:
            yield MissingFiles(bundled.missing)
            return
        document, warnings = bundled.document, bundled.warnings
        notes = (f"the root of the archive is {quote_text(bundled.entry)}",)
        origin = FilePositions(packed, entry=form.entry, url=task.options.document_url)
    compilation = compile_document(document, task.options, origin=origin)
    report = compilation.report
    report = replace(report, warnings=(*warnings, *report.warnings), notes=(*notes, *report.notes))
    compilation = replace(compilation, report=report)
    if task.before is not None:
        compilation = replace(compilation, changes=compare_versions(task.before, compilation))
    yield from send_compilation(compilation)
    if document is not sent:
        yield from send_document(document)


def _guard(task: Task, source: BinaryIO, reply: Callable[[Task, bytes], Iterator[Message]]) -> Iterator[Message]:
    try:
        yield from reply(task, source.read())
    except BadInput as error:
        yield send_refusal(_out_of_memory(task) if _OUT_OF_MEMORY in error.message else error)
    except Exception as error:  # the parent logs the error, because this process has no log
        is_lack = isinstance(error, MemoryError) or isinstance(error.__cause__, MemoryError)
        yield send_refusal(_out_of_memory(task)) if is_lack else Crash(traceback.format_exc()[-_TRACE_LENGTH:])


def _out_of_memory(task: Task) -> DocumentTooLarge:
    return DocumentTooLarge(
        f"Reading the document takes more memory than {task.memory_bytes // 2**20} MiB (the limit)."
    )


def _read_value(raw: bytes) -> bytes:
    """Check a JSON value by the rules of every request body; return the text of a string, or the object as it is."""
    if not raw.startswith(_QUOTE):
        refuse_many_values(raw, values=MAX_BODY_VALUES, containers=MAX_BODY_VALUES)  # guard: body-values-before-reading
    value = load_json(raw)
    return value.encode() if isinstance(value, str) else raw


def _decode(text: bytes) -> bytes:
    try:
        return binascii.a2b_base64(text.translate(None, _WHITE_SPACE), strict_mode=True)
    except binascii.Error as error:
        raise InvalidDocument(f"The archive is not valid base64: {error}.") from error


if __name__ == "__main__":
    main()
