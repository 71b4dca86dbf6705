"""Import reports: stored and read back, and what they say of the tenant's policy."""

import orjson

from gateway.catalog.sources.reports import decode_report, encode_report, report_with_policy
from gateway.domain.sources import Compilation
from gateway.domain.tenancy.policy import Decision, Policy
from gateway.openapi.compiler import compile_document
from gateway.openapi.options import ImportOptions
from tests.support.documents import pets


def _compiled() -> Compilation:
    return compile_document(orjson.dumps(pets("https://pets.example")), ImportOptions())


def test_a_report_is_read_back_as_it_was() -> None:
    """Ours: the stored report is the report of the import (OAS-3)."""
    report = _compiled().report
    assert decode_report(encode_report(report)) == report


def test_a_report_says_what_runs_without_asking() -> None:
    """Ours: as long as the default allows every level, the report says so."""
    notes = report_with_policy(_compiled(), Policy()).notes
    assert [word for word in ("moderate", "dangerous") if any(word in note for note in notes)] == [
        "moderate",
        "dangerous",
    ]


def test_a_level_that_is_denied_needs_no_note() -> None:
    """Ours: the note is about what would run."""
    compiled = _compiled()
    denied = Policy(moderate=Decision.DENY, dangerous=Decision.DENY)
    assert report_with_policy(compiled, denied).notes == compiled.report.notes
