"""What a process that reads for us and its parent tell each other: messages of bounded size, each behind its length.

The result of a large document crosses in many small messages, so that reading it back never takes long at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar

import msgspec

from gateway.domain.sources import Compilation, CompiledOperation, ImportReport, ListedPrice, OperationReport
from gateway.errors import BadInput, DocumentTooLarge, Fault, InvalidBody, InvalidDocument
from gateway.openapi.options import ImportOptions

LENGTH_BYTES = 4
LONGEST = 64 * 1024 * 1024
"""How long one message may be; all but what cannot be divided are far shorter."""

_BATCH_BYTES = 128 * 1024
_BATCH_ITEMS = 200
_KINDS: dict[str, type[BadInput]] = {
    kind.code: kind for kind in (BadInput, InvalidBody, InvalidDocument, DocumentTooLarge)
}

T = TypeVar("T")


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What the process is asked; what it is to read follows. An archive is sent as the base64 text it came in."""

    memory_bytes: int
    cpu_s: int
    options: ImportOptions = ImportOptions()
    is_archive: bool = False
    entry: str | None = None


class Opening(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What is said of the document as a whole."""

    title: str
    version: str
    scheme_names: tuple[str, ...]
    warnings: tuple[str, ...]
    tools_list_bytes: int
    listed: int | None
    dearest: tuple[ListedPrice, ...]


class Operations(msgspec.Struct, frozen=True, tag=True):
    """The next of its tools."""

    items: tuple[CompiledOperation, ...]


class Fates(msgspec.Struct, frozen=True, tag=True):
    """What became of the next of its operations."""

    items: tuple[OperationReport, ...]


class OutlinePart(msgspec.Struct, frozen=True, tag=True):
    """The next part of a document: the one that an archive became, or the one that a request's body held."""

    content: bytes


class Outlining(msgspec.Struct, frozen=True, tag=True):
    """The next part of what the query tools know of the document."""

    content: bytes


class Rest(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What a request's body holds beside its document, as JSON, and under which keys the document stood."""

    fields: bytes
    place: tuple[str, ...]


class Refusal(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The document is not taken, in the words for the caller."""

    code: str
    message: str
    faults: tuple[Fault, ...]


class Crash(msgspec.Struct, frozen=True, tag=True):
    """The compiler failed in a way nobody foresaw; for the log."""

    trace: str


class Closing(msgspec.Struct, frozen=True, tag=True):
    """Everything has been said; how much memory it took at most."""

    peak_bytes: int


Message: TypeAlias = Opening | Operations | Fates | OutlinePart | Outlining | Rest | Refusal | Crash | Closing

decode_message: Callable[[bytes], Message] = msgspec.msgpack.Decoder[Message](Message).decode
decode_task: Callable[[bytes], Task] = msgspec.msgpack.Decoder(Task).decode
_encode = msgspec.msgpack.Encoder().encode


def write_frame(message: Message | Task) -> bytes:
    """The message behind its length."""
    content = _encode(message)
    return len(content).to_bytes(LENGTH_BYTES, "big") + content


def tell_compilation(compilation: Compilation) -> Iterator[Message]:
    """A compilation, message by message."""
    report = compilation.report
    yield Opening(
        title=compilation.title,
        version=compilation.version,
        scheme_names=compilation.scheme_names,
        warnings=report.warnings,
        tools_list_bytes=report.tools_list_bytes,
        listed=report.listed,
        dearest=report.dearest,
    )
    for operations in _batches(compilation.operations, lambda made: len(made.definition)):
        yield Operations(operations)
    for fates in _batches(report.operations, lambda fate: sum(map(len, fate.reasons))):
        yield Fates(fates)
    for start in range(0, len(compilation.outline), _BATCH_BYTES):
        yield Outlining(compilation.outline[start : start + _BATCH_BYTES])


def tell_document(document: bytes) -> Iterator[Message]:
    """A document, part by part."""
    for start in range(0, len(document), _BATCH_BYTES):
        yield OutlinePart(document[start : start + _BATCH_BYTES])


def tell_refusal(error: BadInput) -> Message:
    """A refusal that the other side raises again."""
    return Refusal(code=error.code, message=error.message, faults=error.faults)


class WorkerAnswer:
    """What the messages of one process say together."""

    def __init__(self) -> None:
        self.is_complete = False
        self.peak_bytes = 0
        self.crash: str | None = None
        self.refusal: BadInput | None = None
        self.rest: Rest | None = None
        self._opening: Opening | None = None
        self._operations: list[CompiledOperation] = []
        self._fates: list[OperationReport] = []
        self._parts: list[bytes] = []
        self._outline: list[bytes] = []

    def take(self, message: Message) -> None:
        """Add the next message."""
        match message:
            case Opening():
                self._opening = message
            case Operations():
                self._operations += message.items
            case Fates():
                self._fates += message.items
            case OutlinePart():
                self._parts.append(message.content)
            case Outlining():
                self._outline.append(message.content)
            case Rest():
                self.rest = message
            case Refusal():
                kind = _KINDS.get(message.code, InvalidDocument)
                self.refusal = kind(message.message, faults=message.faults)
            case Crash():
                self.crash = message.trace
            case Closing():
                self.is_complete, self.peak_bytes = True, message.peak_bytes

    @property
    def document(self) -> bytes | None:
        """The document that was sent back; None when none was."""
        return b"".join(self._parts) if self._parts else None

    def compilation(self) -> Compilation | None:
        """The compilation, once all of it was said."""
        opening = self._opening
        if opening is None or not self.is_complete or self.crash is not None:
            return None
        report = ImportReport(
            operations=tuple(self._fates),
            warnings=opening.warnings,
            tools_list_bytes=opening.tools_list_bytes,
            listed=opening.listed,
            dearest=opening.dearest,
        )
        return Compilation(
            title=opening.title,
            version=opening.version,
            operations=tuple(self._operations),
            report=report,
            scheme_names=opening.scheme_names,
            outline=b"".join(self._outline),
        )


def _batches(items: Sequence[T], size: Callable[[T], int]) -> Iterator[tuple[T, ...]]:
    batch: list[T] = []
    length = 0
    for item in items:
        batch.append(item)
        length += size(item)
        if length >= _BATCH_BYTES or len(batch) >= _BATCH_ITEMS:
            yield tuple(batch)
            batch, length = [], 0
    if batch:
        yield tuple(batch)
