"""The process that takes the document out of a large body."""

import pytest

from gateway.admin.body_splitter import split
from gateway.errors import DocumentTooLarge
from gateway.openapi.document.document import MOST_NODES
from gateway.openapi.worker_messages import Task

TASK = Task(memory_bytes=1 << 30, cpu_s=30)


def _body(values: int) -> bytes:
    return b'{"name":"a","document":{"x":[' + b"1," * values + b"1]}}"


def test_many_values_are_counted_before_they_are_read() -> None:
    """Ours: a body with more values than any document may have is refused in the time that counting takes (ISO-2)."""
    with pytest.raises(DocumentTooLarge, match="JSON values"):
        next(split(TASK, _body(4 * MOST_NODES)))


def test_a_document_of_the_largest_size_passes() -> None:
    """Ours: as many values as a document may have are read, whatever else the body holds."""
    assert next(split(TASK, _body(MOST_NODES)))
