"""Messages between processes: everything, and never much at a time."""

import msgspec
import orjson
import pytest

from gateway.domain.sources import OperationRule
from gateway.errors import BadInput, DocumentTooLarge, Fault, GatewayError, InvalidBody, InvalidDocument
from gateway.openapi.compiler import compile_document
from gateway.openapi.options import DocumentForm, ImportOptions
from gateway.openapi.worker_messages import (
    LENGTH_BYTES,
    Closing,
    Crash,
    Message,
    Task,
    WorkerAnswer,
    decode_message,
    decode_task,
    send_compilation,
    send_document,
    send_refusal,
    write_frame,
)
from tests.support.documents import many
from tests.support.specs import load_spec

MOST = 1024 * 1024


def across(message: Message) -> Message:
    frame = write_frame(message)
    assert len(frame) <= MOST
    assert int.from_bytes(frame[:LENGTH_BYTES], "big") == len(frame) - LENGTH_BYTES
    return decode_message(frame[LENGTH_BYTES:])


@pytest.mark.parametrize("name", [None, "slack-web-v2.json"])
def test_a_compilation_crosses_whole_in_many_small_messages(name: str | None) -> None:
    """Ours: no message is so large that decoding it holds others up (TEN-5)."""
    document = load_spec(name) if name else orjson.dumps(many("https://a.example", 5_000))
    compilation = compile_document(document, ImportOptions())
    answer = WorkerAnswer()
    for message in send_compilation(compilation):
        answer.take(across(message))

    assert answer.compilation() is None
    answer.take(across(Closing(1)))
    assert answer.compilation() == compilation


def test_a_document_crosses_in_parts() -> None:
    """Ours: a document of any size comes back byte for byte."""
    document = bytes(range(256)) * 10_000
    answer = WorkerAnswer()
    for message in send_document(document):
        answer.take(across(message))

    assert answer.document == document
    assert WorkerAnswer().document is None


@pytest.mark.parametrize("kind", [BadInput, InvalidBody, InvalidDocument, DocumentTooLarge])
def test_a_refusal_stays_unchanged(kind: type[BadInput]) -> None:
    """Ours: kind, words and places cross as they are."""
    answer = WorkerAnswer()
    answer.take(across(send_refusal(kind("no", faults=[Fault(pointer="/a", reason="b", line=1, column=2)]))))

    assert isinstance(answer.refusal, GatewayError)
    assert type(answer.refusal) is kind
    assert answer.refusal.message == "no"
    assert answer.refusal.faults == (Fault(pointer="/a", reason="b", line=1, column=2),)


def test_a_crash_is_no_compilation() -> None:
    """Ours: a part that was sent before a crash is not taken for the whole."""
    answer = WorkerAnswer()
    for message in send_compilation(compile_document(orjson.dumps(many("https://a.example", 2)), ImportOptions())):
        answer.take(message)
    answer.take(across(Crash("trace")))
    answer.take(across(Closing(1)))

    assert answer.compilation() is None
    assert answer.crash == "trace"


def test_a_task_keeps_its_options_and_nonsense_is_refused() -> None:
    """Ours: the received request is the sent one."""
    options = ImportOptions(
        prefix="p",
        known_names={"GET /": "a"},
        taken=frozenset({"b"}),
        include=(OperationRule(paths=("/a*",)), OperationRule()),
        exclude=(OperationRule(tags=("t",), methods=("GET",)),),
    )
    task = Task(memory_bytes=1, cpu_s=2, options=options, form=DocumentForm(is_archive=True, entry="a.yaml"))

    assert decode_task(write_frame(task)[LENGTH_BYTES:]) == task
    with pytest.raises(msgspec.MsgspecError):
        decode_message(b"\x00nonsense")
