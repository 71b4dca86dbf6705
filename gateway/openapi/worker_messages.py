"""The protocol between a worker process and its parent: messages, each prefixed with its length.

The result of a large document is sent in many small messages, so that decoding one message takes little time.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

import msgspec

from gateway.domain.sources import Compilation, CompiledOperation
from gateway.domain.updates.import_reports import ImportReport, OperationReport
from gateway.domain.updates.source_changes import ComparedVersion, ImportChanges
from gateway.errors import BadInput, DocumentTooLarge, Fault, InvalidBody, InvalidDocument
from gateway.openapi.limits import MESSAGE_BATCH_BYTES
from gateway.openapi.options import PLAIN, DocumentForm, ImportOptions

LENGTH_BYTES = 4

_BATCH_ITEMS = 200
_KINDS: dict[str, type[BadInput]] = {
    kind.code: kind for kind in (BadInput, InvalidBody, InvalidDocument, DocumentTooLarge)
}

T = TypeVar("T")


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """The task of the process; the document is sent after it."""

    memory_bytes: int
    cpu_s: int
    options: ImportOptions = ImportOptions()
    form: DocumentForm = PLAIN
    before: ComparedVersion | None = None
    """The version with which the compilation is compared."""


class Opening(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Title, version and security schemes of a compiled document, and the report without its operations."""

    title: str
    version: str
    scheme_names: tuple[str, ...]
    report: ImportReport


class Operations(msgspec.Struct, frozen=True, tag=True):
    """The next batch of compiled operations."""

    items: tuple[CompiledOperation, ...]


class OperationReports(msgspec.Struct, frozen=True, tag=True):
    """The next batch of operation reports."""

    items: tuple[OperationReport, ...]


class OutlinePart(msgspec.Struct, frozen=True, tag=True):
    """The next part of the document from an archive or a JSON string."""

    content: bytes


class Outlining(msgspec.Struct, frozen=True, tag=True):
    """The next part of the encoded outline, which the query tools read."""

    content: bytes


class ChangesMessage(msgspec.Struct, frozen=True, tag=True):
    """The differences from the version before."""

    changes: ImportChanges


class MissingFiles(msgspec.Struct, frozen=True, tag=True):
    """The files that an archive refers to and does not have."""

    paths: tuple[str, ...]


class Refusal(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A refusal of the document, with the message for the caller."""

    code: str
    message: str
    faults: tuple[Fault, ...]


class Crash(msgspec.Struct, frozen=True, tag=True):
    """An unforeseen failure in the process; for the log."""

    trace: str


class Closing(msgspec.Struct, frozen=True, tag=True):
    """The last message, also after a refusal or a crash. Contains the peak memory of the process."""

    peak_bytes: int


Message: TypeAlias = (
    Opening
    | Operations
    | OperationReports
    | OutlinePart
    | Outlining
    | ChangesMessage
    | MissingFiles
    | Refusal
    | Crash
    | Closing
)

decode_message: Callable[[bytes], Message] = msgspec.msgpack.Decoder[Message](Message).decode
decode_task: Callable[[bytes], Task] = msgspec.msgpack.Decoder(Task).decode
_encode = msgspec.msgpack.Encoder().encode


def write_frame(message: Message | Task) -> bytes:
    """Encode a message, prefixed with its length."""
    content = _encode(message)
    return len(content).to_bytes(LENGTH_BYTES, "big") + content


def send_compilation(compilation: Compilation) -> Iterator[Message]:
    """Yield the messages of a compilation."""
    report = compilation.report
    yield Opening(
        title=compilation.title,
        version=compilation.version,
        scheme_names=compilation.scheme_names,
        report=replace(report, operations=()),
    )
    for operations in _batches(
        compilation.operations, lambda made: len(made.definition) + len(made.input_schema or b"")
    ):
        yield Operations(operations)
    for fates in _batches(report.operations, lambda fate: sum(map(len, fate.reasons))):
        yield OperationReports(fates)
    for start in range(0, len(compilation.outline), MESSAGE_BATCH_BYTES):
        yield Outlining(compilation.outline[start : start + MESSAGE_BATCH_BYTES])
    if compilation.changes is not None:
        yield ChangesMessage(compilation.changes)


def send_document(document: bytes) -> Iterator[Message]:
    """Yield the messages of a document."""
    for start in range(0, len(document), MESSAGE_BATCH_BYTES):
        yield OutlinePart(document[start : start + MESSAGE_BATCH_BYTES])


def send_refusal(error: BadInput) -> Message:
    """Build the message for an error; the parent raises the error again."""
    return Refusal(code=error.code, message=error.message, faults=error.faults)


class WorkerAnswer:
    """The accumulated messages of one process."""

    def __init__(self) -> None:
        self.is_complete = False
        self.peak_bytes = 0
        self.crash: str | None = None
        self.refusal: BadInput | None = None
        self.missing: tuple[str, ...] = ()
        self._opening: Opening | None = None
        self._operations: list[CompiledOperation] = []
        self._fates: list[OperationReport] = []
        self._parts: list[bytes] = []
        self._outline: list[bytes] = []
        self._changes: ImportChanges | None = None

    def take(self, message: Message) -> None:
        """Add the next message."""
        match message:
            case Opening():
                self._opening = message
            case Operations():
                self._operations += message.items
            case OperationReports():
                self._fates += message.items
            case OutlinePart() | Outlining():
                (self._parts if isinstance(message, OutlinePart) else self._outline).append(message.content)
            case ChangesMessage():
                self._changes = message.changes
            case MissingFiles():
                self.missing = message.paths
            case Refusal():
                kind = _KINDS.get(message.code, InvalidDocument)
                self.refusal = kind(message.message, faults=message.faults)
            case Crash():
                self.crash = message.trace
            case Closing():
                self.is_complete, self.peak_bytes = True, message.peak_bytes

    @property
    def document(self) -> bytes | None:
        """The document from an archive or a JSON string; None if it is the input itself."""
        return b"".join(self._parts) if self._parts else None

    def compilation(self) -> Compilation | None:
        """Return the compilation; None before `Opening` and `Closing` were received, or after a crash."""
        opening = self._opening
        if opening is None or not self.is_complete or self.crash is not None:
            return None
        return Compilation(
            title=opening.title,
            version=opening.version,
            operations=tuple(self._operations),
            report=replace(opening.report, operations=tuple(self._fates)),
            scheme_names=opening.scheme_names,
            outline=b"".join(self._outline),
            changes=self._changes,
        )


def _batches(items: Sequence[T], size: Callable[[T], int]) -> Iterator[tuple[T, ...]]:
    batch: list[T] = []
    length = 0
    for item in items:
        batch.append(item)
        length += size(item)
        if length >= MESSAGE_BATCH_BYTES or len(batch) >= _BATCH_ITEMS:
            yield tuple(batch)
            batch, length = [], 0
    if batch:
        yield tuple(batch)
