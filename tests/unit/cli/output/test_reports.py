"""Import report for a person."""

from gateway.cli.output.reports import (
    count_tools,
    render_operations,
    render_prices,
    render_reasons,
    render_report,
    render_totals,
    render_warnings,
)

_REPORT: dict[str, object] = {
    "operations": [
        {"method": "get", "path": "/a", "tool": "a", "status": "ok", "reasons": []},
        {"method": "post", "path": "/b", "tool": "b", "status": "degraded", "reasons": ["one thing"]},
        *(
            {"method": "put", "path": f"/c{n}", "tool": None, "status": "skipped", "reasons": ["no server"]}
            for n in range(5)
        ),
    ],
    "counts": {"ok": 1, "degraded": 1, "skipped": 5},
    "warnings": ["a pattern was dropped"],
    "tools_listed": 9,
    "tools_list_bytes": 4_002,
    "estimated_tokens": 1_000,
    "dearest": [
        {"tool": "b", "bytes": 3_000, "estimated_tokens": 750},
        {"tool": "a", "bytes": 989, "estimated_tokens": 247},
    ],
}


def test_totals_name_operations_tools_bytes_and_an_estimate_of_tokens() -> None:
    """Ours: the price of a document is known before a model pays it; tools are those that are listed (OAS-3)."""
    assert render_totals(_REPORT) == (
        "7 operations: 1 ok, 1 degraded, 5 skipped\n"
        "9 tools, 4,002 bytes to list, about 1,000 tokens (estimate: bytes / 4)"
    )
    assert count_tools(_REPORT) == 9


def test_totals_of_one_are_singular() -> None:
    """Ours: `1 operation`, not `1 operations` (OAS-3)."""
    one: dict[str, object] = {
        "operations": [{"method": "get", "path": "/a", "tool": "a", "status": "ok", "reasons": []}],
        "counts": {"ok": 1, "degraded": 0, "skipped": 0},
        "tools_listed": 1,
        "tools_list_bytes": 340,
        "estimated_tokens": 85,
    }

    assert render_totals(one).splitlines() == [
        "1 operation: 1 ok, 0 degraded, 0 skipped",
        "1 tool, 340 bytes to list, about 85 tokens (estimate: bytes / 4)",
    ]


def test_examples_have_a_line_where_the_document_has_any() -> None:
    """Ours: the relaxations by the document's own examples are visible at a glance (OAS-8)."""
    counts = {"accepted": 1_200, "relaxed": 3, "refused": 1, "unchecked": 0}

    assert render_totals({**_REPORT, "examples": counts}).splitlines()[2] == (
        "1,204 examples of requests: 1,200 accepted, 3 relaxed, 1 refused, 0 unchecked"
    )
    assert render_totals({**_REPORT, "response_examples": {**counts, "refused": 0}}).splitlines()[2] == (
        "1,203 examples of responses: 1,200 accepted, 3 relaxed, 0 refused, 0 unchecked"
    )
    assert len(render_totals({**_REPORT, "examples": None}).splitlines()) == 2


def test_operations_that_are_not_whole_are_grouped_by_reason() -> None:
    """Ours: a thousand operations with one fault are one line."""
    text = str(render_reasons(_REPORT))

    assert "1  one thing\n         POST /b" in text
    assert "5  no server\n         PUT /c0, PUT /c1, PUT /c2 and 2 more" in text
    assert text.endswith("warnings:\n  a pattern was dropped")


def test_needs_come_first_and_long_lists_of_remarks_are_cut() -> None:
    """Ours: a setting that a source lacks is not lost among remarks (OAS-3)."""
    need = {"kind": "credential", "scheme": "oauth_2_0", "operations": 97, "ways": ["--credential a", "--kind user"]}
    text = str(render_reasons({**_REPORT, "needs": [need], "notes": [f"n{number}" for number in range(8)]}))

    assert text.splitlines()[:3] == [
        "needs a credential: 97 operations, scheme oauth_2_0, two ways to give one",
        "  --credential a",
        "  --kind user",
    ]
    assert text.endswith("notes:\n  n0\n  n1\n  n2\n  n3\n  n4\n  and 3 more, in the full report")
    assert str(render_report({**_REPORT, "needs": [need]})).endswith("\n  --credential a\n  --kind user")
    assert render_warnings({"warnings": ["a", "b"]}) == "warnings:\n  a\n  b"


def test_a_clean_import_has_nothing_to_explain() -> None:
    """Ours: no empty headings."""
    assert render_reasons({"operations": [], "warnings": []}) == ""


def test_every_operation_has_its_line() -> None:
    """Ours: the report accounts for each operation of the document."""
    lines = str(render_operations(_REPORT)).splitlines()

    assert len(lines) == 1 + 7
    assert lines[1].split() == ["ok", "GET", "/a", "a"]
    assert lines[3].split() == ["skipped", "PUT", "/c0", "-", "no", "server"]


def test_the_dearest_tools_are_a_table_of_their_own() -> None:
    """Ours: it is plain which tools to leave out to save tokens."""
    lines = str(render_prices(_REPORT)).splitlines()

    assert [line.split() for line in lines[1:]] == [["b", "3,000", "750"], ["a", "989", "247"]]
    assert render_prices({}) == ""
    assert str(render_report(_REPORT)).splitlines()[-1] == render_totals(_REPORT).splitlines()[-1]
    assert str(render_prices(_REPORT)) in str(render_report(_REPORT))


def test_a_report_of_another_shape_does_not_break_the_command() -> None:
    """Ours: a newer gateway's answer is shown as far as it is understood."""
    assert render_totals({"operations": "?"}).startswith("0 operations")
    assert str(render_operations({})) == "STATUS  METHOD  PATH  TOOL  REASONS"
