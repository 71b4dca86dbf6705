"""Import reports: stored and read back, and their statements about the tenant's policy."""

from typing import Any

import orjson

from gateway.catalog.sources.reports import decode_report, encode_report, report_with_policy
from gateway.domain.sources import Compilation
from gateway.domain.tenancy.policy import Decision, Policy
from gateway.openapi.compiler import compile_document
from gateway.openapi.options import ImportOptions
from tests.support.documents import pets
from tests.support.openapi import compile_it, document


def _compiled() -> Compilation:
    return compile_document(orjson.dumps(pets("https://pets.example")), ImportOptions())


def test_a_report_is_read_back_as_it_was() -> None:
    """Ours: the stored report is the report of the import (OAS-3)."""
    report = _compiled().report
    assert decode_report(encode_report(report)) == report


def test_a_report_names_the_levels_that_run_without_confirmation() -> None:
    """Ours: as long as the default permits every level, the report states it."""
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


def test_a_report_names_the_clients_that_refuse_its_tools() -> None:
    """Ours: long names, descriptions and lists are notes with a remedy, before an agent meets them (CLN-1)."""
    long = "n" * 53
    paths: dict[str, Any] = {f"/{number}": {"get": {"operationId": f"op{number}"}} for number in range(129)}
    paths["/0"]["get"] |= {"operationId": long, "description": "d" * 1025}
    newer = {"name": "q", "in": "query", "schema": {"type": ["string", "null"]}}
    paths["/1"]["get"]["parameters"] = [newer]
    raw = document(paths)
    notes = [note.split("; ") for note in compile_it(raw).report.notes]

    assert [
        ("OpenAI API, VS Code, Copilot: refuse lists of more than 128 tools", "--expose query"),
        ("Cursor: leaves out tools of lists of more than 80 tools", "--expose query"),
        (
            f"Cursor: leaves out tools whose name with a server name of 8 has more than 60 characters ({long})",
            "--rename",
        ),
        (f"Codex: cuts or refuses names that have more than 64 characters as `mcp__SERVER__TOOL` ({long})", "--rename"),
        (f"OpenAI API: refuses a request with a description of more than 1,024 characters ({long})", "--description"),
        (f"older Gemini clients: refuse a request whose schemas have {_KEYWORDS} (op1)", "google-genai"),
    ] == [
        (what.removeprefix("Claude Code, "), next(option for option in _OPTIONS if option in remedy))
        for what, remedy in notes
    ]
    assert compile_it(raw, is_listed=False, outline=True).report.notes == ()


_KEYWORDS = "`$ref`, `const`, `exclusiveMinimum`, `patternProperties`, `propertyNames` or lists of types"
_OPTIONS = ("--expose query", "--rename", "--description", "google-genai")
