"""Conforming bodies for the tools of real documents: none is refused, and none needs a child process."""

import pytest

from benchmarks.openapi.child import DocumentFile
from benchmarks.validation.__main__ import measure
from gateway.openapi.options import PLAIN
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
