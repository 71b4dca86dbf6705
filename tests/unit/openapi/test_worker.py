"""The worker that compiles one document: what it checks first."""

import pytest

from gateway.errors import DocumentTooLarge
from gateway.openapi.document.limits import MAX_NODES
from gateway.openapi.options import DocumentForm
from gateway.openapi.worker import answer
from gateway.openapi.worker_messages import Task

TASK = Task(memory_bytes=1 << 30, cpu_s=30, form=DocumentForm(is_json_value=True))


def test_many_values_are_counted_before_they_are_read() -> None:
    """Ours: an object with more values than a document may have is refused as soon as they are counted (ISO-2)."""
    with pytest.raises(DocumentTooLarge, match="JSON values"):
        next(answer(TASK, b'{"x":[' + b"1," * (4 * MAX_NODES) + b"1]}"))
