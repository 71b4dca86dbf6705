"""Operations that become tools: the tenant's rules, and hints of the document's author."""

from collections.abc import Mapping
from typing import Any

import pytest

from gateway.domain.listed.definition import served_bytes
from gateway.domain.sources import Compilation, OperationRule
from gateway.domain.tenancy.policy import Safety
from gateway.domain.updates.import_reports import OperationReport, Status
from gateway.openapi.query.outline import Outline, decode_outline
from gateway.openapi.query.tools import DEFINITIONS
from tests.support.openapi import compile_it, definition_of, document, fate, only, operation
from tests.support.queries import library

PETS = {
    "/pets": {
        "get": {"operationId": "listPets", "tags": ["pets", "read"]},
        "post": {"operationId": "addPet", "tags": ["pets"]},
    },
    "/pets/{id}/toys": {"get": {"tags": ["toys", "read"]}},
    "/shops": {"get": {"operationId": "listShops"}},
}

CHOICES: list[tuple[Any, Any, list[str]]] = [
    ((), (), ["GET /pets", "POST /pets", "GET /pets/{id}/toys", "GET /shops"]),
    (({"methods": ("get",), "tags": ("pets", "toys")},), (), ["GET /pets", "GET /pets/{id}/toys"]),
    (({"paths": ("/pets*",)},), ({"methods": ("POST",)},), ["GET /pets", "GET /pets/{id}/toys"]),
    (({"operation_ids": ("list*",)},), (), ["GET /pets", "GET /shops"]),
    (({"tags": ("toys",)}, {"operation_ids": ("listShops",)}), (), ["GET /pets/{id}/toys", "GET /shops"]),
    ((), ({"tags": ("read",)}, {"paths": ("/shops",)}), ["POST /pets"]),
    (({"tags": ("Pets",)},), (), []),
    ((), ({},), []),
    (({},), (), ["GET /pets", "POST /pets", "GET /pets/{id}/toys", "GET /shops"]),
]


def rules(*members: Mapping[str, tuple[str, ...]]) -> tuple[OperationRule, ...]:
    """Rules of these members."""
    return tuple(OperationRule(**member) for member in members)


def chosen(compilation: Compilation) -> list[str]:
    """The identities of the operations that became tools."""
    return [made.identity for made in compilation.operations]


@pytest.mark.parametrize(("include", "exclude", "expected"), CHOICES)
def test_rules_choose_operations(include: Any, exclude: Any, expected: list[str]) -> None:
    """Ours: operations that some include rule matches, or all without one, and that no exclude rule does."""
    made = compile_it(document(PETS), include=rules(*include), exclude=rules(*exclude))

    assert chosen(made) == expected
    assert [report.tool is None for report in made.report.operations].count(False) == len(expected)


def test_unselected_operations_are_accounted_for() -> None:
    """Ours: it is skipped with the reason, so that totals add up; a rule that never matches is a warning (OAS-3)."""
    made = compile_it(
        document(PETS),
        include=rules({"tags": ("pets",)}, {"paths": ("/none/*",)}),
        exclude=rules({"methods": ("POST",)}, {"operation_ids": ("listPet",)}),
    )

    assert len(made.report.operations) == 4
    assert [report.reasons for report in made.report.operations] == [
        (),
        ("not selected: exclude rule 1 matches",),
        ("not selected: no include rule matches",),
        ("not selected: no include rule matches",),
    ]
    assert made.report.count(Status.SKIPPED) == 3
    assert made.report.warnings == (
        "include rule 2 matches no operation of the document",
        "exclude rule 2 matches no operation of the document",
    )
    nothing = compile_it(document(PETS), exclude=rules({}))
    assert nothing.report.warnings == ("no operation of the document is selected",)
    assert nothing.report.tools_list_bytes == len(b'{"tools":[]}')


def test_a_choice_changes_no_other_tools_name() -> None:
    """Ours: two operations that share a name keep theirs when one of them is left out (OAS-3)."""
    twins = document({"/a": {"get": {"operationId": "same"}}, "/b": {"get": {"operationId": "same"}}})
    both = {made.identity: made.tool for made in compile_it(twins).operations}

    assert only(twins, exclude=rules({"paths": ("/b",)})).tool == both["GET /a"] != "same"


def outline(**options: Any) -> Outline:
    """The library's operations in the query tools with this choice."""
    return decode_outline(compile_it(library(), outline=True, **options).outline)[0]


def test_query_tools_know_only_selected_operations() -> None:
    """Ours: neither the other operations nor the schemas and tags that only they lead to are shown (OAS-5)."""
    whole = outline()
    part = outline(include=rules({"operation_ids": ("listBooks",)}))

    assert {endpoint.operation_id for endpoint in part.endpoints} == {"listBooks"}
    assert len(whole.endpoints) == 5
    assert {entry.name for entry in part.schemas} == {"Book", "Author", "Country", "Failure"} & {
        entry.name for entry in whole.schemas
    }
    assert {entry.name for entry in whole.schemas} > {entry.name for entry in part.schemas}
    assert set(part.tags) <= {tag for endpoint in part.endpoints for tag in endpoint.tags}


def levelled(root: Any, item: Any, own: Any, key: str = "x-mcp") -> OperationReport:
    """Result for an operation whose document, path item and self have this extension; `...` is none."""
    reported = [{} if value is ... else {key: value} for value in (root, item, own)]
    return fate(document({"/x": {**reported[1], "get": {"operationId": "op", **reported[2]}}}, **reported[0]))


@pytest.mark.parametrize(
    ("root", "item", "own", "refused_by"),
    [
        (..., ..., ..., None),
        (..., ..., True, None),
        (..., ..., False, "the operation"),
        (..., False, ..., "its path item"),
        (False, ..., ..., "the document"),
        (False, ..., True, None),
        (True, False, ..., "its path item"),
        (False, {"enabled": True}, ..., None),
        (..., True, {"enabled": False}, "the operation"),
        (..., ..., {"hidden": True}, "the operation"),
        (..., ..., {"hidden": False}, None),
        (..., ..., {"disabled": True}, "the operation"),
        (False, ..., {"disabled": False}, None),
        (False, ..., {"name": "wanted"}, None),
        (False, ..., {"safety": "dangerous"}, "the document"),
        (..., ..., {"enabled": True, "hidden": True}, "the operation"),
    ],
)
@pytest.mark.parametrize("key", ["x-mcp", "x-speakeasy-mcp", "x-google-mcp-tool"])
def test_the_nearest_extension_decides(root: Any, item: Any, own: Any, refused_by: str | None, key: str) -> None:
    """Ours: an author's hint at operation, path item or document counts where the tenant has no rule (OAS-3)."""
    report = levelled(root, item, own, key)

    reasons = () if refused_by is None else (f"not selected: {key} of {refused_by} excludes it",)
    assert report.reasons == reasons
    assert (report.status is Status.SKIPPED) == (refused_by is not None)


def test_the_tenants_rule_overrides_the_documents_extension() -> None:
    """Ours: an include rule overrides the author's exclusion; an exclude rule overrides the author's inclusion."""
    unwanted = operation({"x-mcp": {"enabled": False, "name": "renamed"}})

    assert only(unwanted, include=rules({"operation_ids": ("op",)})).tool == "renamed"
    assert fate(operation({"x-mcp": True}), exclude=rules({"methods": ("GET",)})).tool is None


@pytest.mark.parametrize("version", ["2.0", "3.0.3", "3.1.0"])
def test_names_and_texts_of_extensions_are_used(version: str) -> None:
    """Ours: name, title and description of the author's, the name in characters that clients take (OAS-3)."""
    raw = operation(
        {
            "summary": "Plain",
            "description": "Plain text.",
            "deprecated": True,
            "x-mcp": {"name": "find the/pet", "title": " Find\n a pet ", "description": "Finds\u200b it."},
            "x-speakeasy-mcp": {"name": "less", "scopes": ["read"]},
        }
    )
    if version == "2.0":
        raw = {"swagger": "2.0", "info": raw["info"], "host": "api.example.com", "paths": raw["paths"]}
    else:
        raw["openapi"] = version
    listed = definition_of(only(raw, prefix="my"))

    assert listed["name"] == "my_find_the_pet"
    assert listed["title"] == "Find a pet"
    assert listed["description"] == "Deprecated. Finds it."


def test_an_extension_does_not_rename_a_stored_tool() -> None:
    """Ours: an operation keeps the name of its tool; the report has the name of the document (OAS-3)."""
    raw = operation({"x-mcp": {"name": "fresh"}})

    kept = compile_it(raw, known_names={"GET /x": "op"})
    assert [made.tool for made in kept.operations] == ["op"]
    assert kept.report.notes == ("GET /x: its tool keeps the name op; the document declares 'fresh'",)
    assert compile_it(raw, known_names={"GET /x": "fresh"}).report.notes == ()


@pytest.mark.parametrize(
    ("method", "hint", "level"),
    [
        ("get", "moderate", Safety.MODERATE),
        ("get", "dangerous", Safety.DANGEROUS),
        ("post", "dangerous", Safety.DANGEROUS),
        ("post", "safe", Safety.MODERATE),
        ("delete", "moderate", Safety.DANGEROUS),
        ("delete", "harmless", Safety.DANGEROUS),
        ("get", 7, Safety.SAFE),
    ],
)
def test_a_document_makes_no_tool_safer(method: str, hint: object, level: Safety) -> None:
    """Ours: a stricter level is taken, one below the method's is a warning (SAF-1)."""
    made = compile_it(operation({"x-mcp": {"safety": hint}}, method=method))

    [tool] = made.operations
    assert tool.safety is level
    assert (made.report.warnings == ()) == (hint == level.value)
    hints = definition_of(tool)["annotations"]
    assert hints["readOnlyHint"] is (level is Safety.SAFE)
    assert hints["destructiveHint"] is (level is not Safety.SAFE)


@pytest.mark.parametrize(
    "hint", ["no", 7, None, [], {"enabled": "no"}, {"name": 7, "title": "", "description": None}, {"hidden": 1}]
)
def test_a_malformed_extension_costs_a_warning_and_nothing_else(hint: object) -> None:
    """Ours: one invalid extension is reported, and its operation is as it would be without (OAS-3)."""
    made = compile_it(operation({"x-mcp": hint}))

    assert made.report.warnings
    assert all(warning.startswith("/paths/~1x/get/x-mcp: ") for warning in made.report.warnings)
    assert [tool.definition for tool in made.operations] == [only(operation({})).definition]


def test_a_list_is_priced_as_it_is_shown() -> None:
    """Ours: the query tools count where they are listed, operations only where they are (OAS-3)."""
    raw = document({f"/p{n}": {"get": {"operationId": f"op{n:02}", "description": "x" * (n + 99)}} for n in range(12)})
    plain = compile_it(raw)
    queried = compile_it(raw, outline=True, is_listed=False)
    both = compile_it(raw, outline=True)

    frame = len(b'{"tools":[]}')
    tools = sum(served_bytes(made.definition) for made in plain.operations)
    asking = sum(map(served_bytes, DEFINITIONS.values()))
    assert plain.report.tools_list_bytes == frame + tools + 11
    assert queried.report.tools_list_bytes == frame + asking + 6
    assert both.report.tools_list_bytes == frame + tools + asking + 18
    assert [price.tool for price in plain.report.dearest] == [f"op{n:02}" for n in range(11, 1, -1)]
    assert plain.report.dearest[0].size == served_bytes(plain.operations[-1].definition)
    assert {price.tool for price in queried.report.dearest} == set(DEFINITIONS)
    assert plain.report.estimated_tokens == round(plain.report.tools_list_bytes / 4)
