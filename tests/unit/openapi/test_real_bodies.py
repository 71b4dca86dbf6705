"""Conforming bodies for the tools of real documents: none is refused, and none needs a child process."""

import msgspec
import pytest

from benchmarks.openapi.child import DocumentFile
from benchmarks.validation.__main__ import measure
from gateway.definitions.json_schema.validator import DeferredCheck, compile_input
from gateway.openapi.compiler import compile_document
from gateway.openapi.options import PLAIN, ImportOptions
from tests.support.specs import load_document, load_spec


@pytest.mark.parametrize(
    ("name", "is_of_second_folder", "metered"),
    [("discord-31.json", False, 15), ("qdrant.json", False, 2), ("hubspot-automation.json", True, 3)],
)
def test_bodies_of_every_tool_are_checked_on_the_event_loop(name: str, is_of_second_folder: bool, metered: int) -> None:
    """Ours: no estimate refuses a valid body or sends one of usual size to a child process (ISO-2)."""
    raw = load_document(name) if is_of_second_folder else load_spec(name)
    counts = measure(DocumentFile(name=name, raw=raw, form=PLAIN)).counts

    assert (counts["refused"], counts["child"]) == (0, 0)
    assert counts["bodies"] >= 0.95 * counts["asked"]
    assert counts["metered"] >= metered


def test_an_empty_body_names_the_members_of_the_nearest_branch() -> None:
    """Ours: a refusal has what a caller can act on, however large the choices of the body are (CAL-2)."""
    made = compile_document(load_document("hubspot-automation.json"), ImportOptions()).operations
    [create] = [one for one in made if (one.plan.method, one.plan.path) == ("POST", "/automation/2026-09-beta/flows")]
    validator = compile_input(create.definition if create.input_schema is None else _whole(create.input_schema))
    arguments: dict[str, object] = {"body": {}}
    found = validator.check(arguments)
    if isinstance(found, DeferredCheck):
        found = validator.check_unbounded(arguments, msgspec.json.encode(arguments))

    assert {fault.pointer for fault in found} == {"/body"}
    assert any('"actions" is a required property' in fault.reason for fault in found)


def _whole(schema: bytes) -> bytes:
    return b'{"inputSchema":' + schema + b"}"
