"""Results of tasks in processes that read documents: the processes are forked, not started as in production."""

import base64
import json
from dataclasses import replace

import orjson
import pytest

from gateway.catalog.sources.worker_pool import WorkerPool
from gateway.errors import BadInput, InvalidBody, InvalidDocument
from gateway.openapi.compiler import compile_document
from gateway.openapi.options import DocumentForm, ImportOptions
from tests.support.archives import ZOO, tgz_of
from tests.support.documents import pets


@pytest.mark.parametrize("is_json_value", [True, False])
async def test_an_archive_becomes_its_one_document(is_json_value: bool) -> None:
    """Ours: an archive is stored as the document that its files make (OAS-7)."""
    raw = tgz_of(ZOO)
    sent = json.dumps(base64.encodebytes(raw).decode()).encode() if is_json_value else raw
    form = DocumentForm(is_json_value=is_json_value, is_archive=True)

    compiled = await WorkerPool().compile(sent, ImportOptions(), form=form)

    assert compiled.document is not None
    made = compile_document(compiled.document, ImportOptions())
    notes = ("the root of the archive is 'zoo/openapi.yaml'", *made.report.notes)
    assert compiled.compilation == replace(made, report=replace(made.report, notes=notes))
    assert [operation.tool for operation in compiled.compilation.operations] == [
        "list_animals",
        "add_animal",
        "add_keeper",
    ]


@pytest.mark.parametrize(
    ("raw", "options", "kind"),
    [
        (b"{", ImportOptions(), InvalidDocument),
        (b"[" * 100_000, ImportOptions(), InvalidDocument),
        (orjson.dumps(pets("https://a.example")), ImportOptions(base_url="ftp://x"), BadInput),
    ],
)
async def test_a_refusal_keeps_its_kind_words_and_faults(
    raw: bytes, options: ImportOptions, kind: type[BadInput]
) -> None:
    """Ours: kind, words and faults are those of the compiler (OAS-1)."""
    with pytest.raises(kind) as here:
        compile_document(raw, options)
    with pytest.raises(kind) as there:
        await WorkerPool().compile(raw, options)
    assert type(there.value) is type(here.value)
    assert (there.value.message, there.value.faults) == (here.value.message, here.value.faults)


@pytest.mark.parametrize("document", [pets("https://pets.example"), json.dumps(pets("https://ä.example"), indent=1)])
async def test_the_json_of_a_request_body_is_a_document(document: object) -> None:
    """Ours: of a large body the worker is given the JSON, and sends back the text of a string (OAS-1)."""
    sent = json.dumps(document).encode()

    compiled = await WorkerPool().compile(sent, ImportOptions(), form=DocumentForm(is_json_value=True))

    assert compiled.document == (document.encode() if isinstance(document, str) else None)
    assert compiled.compilation == compile_document(compiled.document or sent, ImportOptions())


@pytest.mark.parametrize(
    ("raw", "kind", "states"),
    [
        (b'{"openapi":"3.1.0","paths":{},"paths":{}}', InvalidBody, "'paths' occurs twice"),
        (b'{"openapi":' + b"[" * 65 + b"]" * 65 + b"}", InvalidBody, "nested deeper than 64"),
        (b'{"openapi":' + b"9" * 641 + b"}", InvalidBody, "more than 640 digits"),
        (b'{"openapi":NaN}', InvalidBody, "NaN"),
        (b'{"openapi":"\\ud800"}', InvalidBody, "surrogate"),
        (b'{"openapi":"\xff"}', InvalidBody, "not UTF-8"),
        (b'"\\ud800"', InvalidBody, "surrogate"),
        (b'"{"', InvalidDocument, "not valid JSON"),
    ],
)
async def test_the_json_of_a_request_body_is_held_to_its_rules(raw: bytes, kind: type[BadInput], states: str) -> None:
    """Ours: an object means the same to every reader, however large it is (ISO-2)."""
    with pytest.raises(kind, match=states):
        await WorkerPool().compile(raw, ImportOptions(), form=DocumentForm(is_json_value=True))
