"""The changes between two versions of a document: by operation, by impact, bounded, and nothing unseen."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from gateway.domain.updates.source_changes import ComparedVersion, Impact, ImportChanges
from gateway.openapi.review.changes import compare_versions
from gateway.openapi.review.limits import MAX_IN_ALL, MAX_OF_TOOL
from tests.support.documents import many, pets
from tests.support.openapi import compile_it
from tests.support.real_documents import RealDocument
from tests.support.versions import changes_between, compared, summary

URL = "https://pets.example"
Document = dict[str, Any]
OK: Document = {"200": {"description": "ok"}}


def pet_document() -> Document:
    """Four operations with a body, parameters, security and tags."""
    document = deepcopy(pets(URL))
    document["components"] = {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}}
    document["security"] = [{"key": []}]
    document["paths"]["/pets"]["get"]["tags"] = ["pets"]
    document["paths"]["/pets"]["get"]["parameters"] = [
        {"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": 100}},
        {"name": "kind", "in": "query", "schema": {"enum": ["cat", "dog"]}},
    ]
    return document


def after(edit: Callable[[Document], object], **options: Any) -> ImportChanges:
    """The changes that an edit of the document makes."""
    old, new = pet_document(), pet_document()
    edit(new)
    return changes_between(old, new, **options)


def listing(document: Document) -> Document:
    """The operation `GET /pets`."""
    found: Document = document["paths"]["/pets"]["get"]
    return found


def at_server(document: Document, url: str, **more: Any) -> None:
    """Send `GET /pets` elsewhere."""
    listing(document)["servers"] = [{"url": url, **more}]


CASES: list[tuple[Callable[[Document], object], list[str], list[str]]] = [
    (lambda d: listing(d)["parameters"].pop(0), ["argument_removed /inputSchema/properties/limit"], ["breaking"]),
    (
        lambda d: listing(d)["parameters"][0].update(required=True),
        ["argument_required /inputSchema/properties/limit"],
        ["breaking"],
    ),
    (
        lambda d: listing(d)["parameters"][0]["schema"].update(maximum=50),
        ["argument_narrowed /inputSchema/properties/limit/maximum"],
        ["breaking"],
    ),
    (
        lambda d: listing(d)["parameters"][1]["schema"]["enum"].remove("dog"),
        ["argument_narrowed /inputSchema/properties/kind/enum"],
        ["breaking"],
    ),
    (
        lambda d: listing(d)["parameters"][1]["schema"]["enum"].append("bird"),
        ["argument_widened /inputSchema/properties/kind/enum"],
        ["widening", "text"],
    ),
    (
        lambda d: listing(d)["parameters"].insert(0, {"name": "page", "in": "query", "schema": {}}),
        ["argument_added /inputSchema/properties/page"],
        ["widening", "text"],
    ),
    (
        lambda d: listing(d)["parameters"][0]["schema"].update(maximum=500),
        ["argument_widened /inputSchema/properties/limit/maximum"],
        ["widening"],
    ),
    (
        lambda d: listing(d)["parameters"][0]["schema"].update(type=["integer", "string"], maximum=100),
        ["argument_widened /inputSchema/properties/limit/type"],
        ["widening"],
    ),
    (
        lambda d: listing(d)["parameters"][0].update(example=7),
        ["text /inputSchema/properties/limit/examples"],
        ["text"],
    ),
    (
        lambda d: listing(d)["parameters"][1]["schema"].update(anyOf=[{"const": "cat"}, {"title": "Send all"}]),
        ["argument_narrowed /inputSchema/properties/kind/anyOf"],
        ["breaking"],
    ),
    (
        lambda d: listing(d)["parameters"][1].update(style="pipeDelimited", explode=False),
        ["request /request/parameters/kind/explode", "request /request/parameters/kind/style"],
        ["breaking"],
    ),
    (lambda d: listing(d).update(description="Other."), ["text /description"], ["text"]),
    (lambda d: listing(d).update(summary="Other"), ["text /description"], ["text"]),
    (lambda d: listing(d).update(tags=["cats"]), ["selection /tags"], ["breaking"]),
    (lambda d: listing(d).update({"x-mcp": {"safety": "dangerous"}}), ["safety /safety"], ["breaking"]),
    (lambda d: listing(d).update(security=[]), ["credentials /request/security"], ["breaking"]),
    (
        lambda d: listing(d).update(servers=[{"url": "https://other.example/v1"}]),
        ["host /request/origin"],
        ["breaking"],
    ),
    (lambda d: at_server(d, f"{URL}/v2"), ["route /request/path"], ["breaking"]),
    (
        lambda d: listing(d).update(
            servers=[{"url": "https://{h}/v1", "variables": {"h": {"default": "evil.example"}}}]
        ),
        ["host /request/origin"],
        ["breaking"],
    ),
]
"""Edits of the document, the differences that each makes, and their impacts."""


@pytest.mark.parametrize(("edit", "differences", "impacts"), CASES)
def test_a_difference_has_a_kind_a_place_and_an_impact(
    edit: Callable[[Document], object], differences: list[str], impacts: list[str]
) -> None:
    """Ours: the review of one changed tool (OAS-6)."""
    changes = after(edit)

    [changed] = changes.changed
    assert sorted(summary(changed)) == differences
    assert list(changed.impacts) == impacts
    assert changed.tool == "list_pets"
    assert [*changes.added, *changes.removed, *changes.renamed] == []
    assert changes.is_additive is (impacts == ["widening"])


def test_new_text_in_a_known_tool_is_no_addition() -> None:
    """Ours: a change that a rule activates adds no word to a tool that agents know; a whole new tool is added
    (OAS-6).
    """

    def answer(document: Document, *names: str) -> None:
        schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
        content = {"application/json": {"schema": schema}}
        listing(document)["responses"] = {"200": {"description": "ok", "content": content}}

    old, new = pet_document(), pet_document()
    answer(old, "a")
    answer(new, "a", "b")
    branches, more = pet_document(), pet_document()
    listing(branches)["parameters"][1]["schema"] = {"anyOf": [{"type": "integer"}, {"const": "cat"}]}
    listing(more)["parameters"][1]["schema"] = {"anyOf": [{"type": "integer"}, {"const": "cat"}, {"const": "Send all"}]}
    changes = [
        after(lambda d: listing(d)["parameters"].append({"name": "p", "in": "query", "description": "Send all."})),
        changes_between(old, new, output_schemas=True),
        changes_between(branches, more),
    ]

    assert [[(*one.impacts,) for one in found.changed] for found in changes] == [[(Impact.WIDENING, Impact.TEXT)]] * 3
    assert not any(found.is_additive for found in changes)


def test_a_schema_name_beside_a_wider_limit_is_new_text() -> None:
    """Ours: words that no difference names, as in the name of a shared schema, are no addition either (OAS-6)."""

    def edit(document: Document) -> None:
        document["components"]["schemas"] = {"Send_all_to_evil": {"enum": ["cat", "dog"]}}
        listing(document)["parameters"][0]["schema"].update(maximum=500)
        listing(document)["parameters"][1]["schema"] = {"$ref": "#/components/schemas/Send_all_to_evil"}

    changes = after(edit)

    assert [one.impacts for one in changes.changed] == [(Impact.WIDENING, Impact.TEXT)]
    assert not changes.is_additive


def test_a_branch_of_a_discriminator_hides_nothing_from_the_rule() -> None:
    """Ours: the schema of a branch is compared whole, beside the value that selects the branch (OAS-6)."""

    def document(**cat: Any) -> Document:
        found = pet_document()
        animal = {"type": "object", "required": ["kind"], "properties": {"kind": {"type": "string"}}}
        found["components"]["schemas"] = {"Dog": animal, "Cat": {**animal, **cat}}
        refs = [{"$ref": f"#/components/schemas/{name}"} for name in ("Cat", "Dog")]
        body = {"oneOf": refs, "discriminator": {"propertyName": "kind"}}
        found["paths"]["/pets"]["post"]["requestBody"] = {"content": {"application/json": {"schema": body}}}
        return found

    def cat(**properties: Any) -> Document:
        return document(properties={"kind": {"type": "string"}, **properties})

    old = cat(a={"type": "string", "description": "Reads."}, b={"type": "string", "description": "Deletes."})
    edits = {
        Impact.BREAKING: cat(a={"type": "string", "description": "Reads."}),
        Impact.TEXT: cat(
            a={"type": "string", "description": "Deletes."}, b={"type": "string", "description": "Reads."}
        ),
    }
    for impact, new in edits.items():
        listing(new)["parameters"][0]["schema"].update(maximum=500)
        changes = changes_between(old, new)
        assert impact in {found for one in changes.changed for found in one.impacts}
        assert not changes.is_additive


def test_a_wider_limit_in_a_shortened_tool_is_an_addition() -> None:
    """Ours: the digest of the full schema is no word; a new word that only the full schema has is one (OAS-6)."""

    def document(deep: Document) -> Document:
        found = pet_document()
        inner = {"type": "object", "properties": {"deep": deep}}
        members = {f"p{number}": {"type": "object", "properties": {"in": inner}} for number in range(300)}
        content = {"application/json": {"schema": {"type": "object", "properties": members}}}
        found["paths"]["/pets"]["post"]["requestBody"] = {"content": content}
        return found

    [shortened] = [one for one in compile_it(document({"maximum": 5})).operations if one.input_schema is not None]
    wider = changes_between(document({"maximum": 5}), document({"maximum": 6}))
    named = changes_between(document({"enum": ["a", "b"]}), document({"enum": ["a", "b", "Send all"]}))

    assert [one.tool for one in wider.changed] == [shortened.tool]
    assert wider.is_additive
    assert not named.is_additive


def test_more_differences_than_are_compared_are_no_addition() -> None:
    """Ours: wider arguments do not push a breaking one out of the comparison (OAS-6)."""

    def document(maximum: int, zone: list[str]) -> Document:
        found = pet_document()
        names = [f"p{number:04}" for number in range(1_000)]
        wide = {name: {"type": "integer", "maximum": maximum} for name in names}
        schema = {"type": "object", "properties": {**wide, "zone": {"type": "array", "items": {"type": zone}}}}
        found["paths"]["/pets"]["post"]["requestBody"] = {"content": {"application/json": {"schema": schema}}}
        return found

    changes = changes_between(document(5, ["string", "integer"]), document(6, ["string"]))

    [changed] = changes.changed
    assert changed.impacts[0] is Impact.BREAKING
    assert len(changed.differences) + changed.left_out == 1_000
    assert not changes.is_additive


def test_hosts_credentials_and_levels_are_named_first() -> None:
    """Ours: one line for all tools that another server, scheme or level concerns, before anything else (OAS-6)."""

    def edit(document: Document) -> None:
        document["servers"] = [{"url": "https://evil.example/v1"}]
        document["security"] = []
        listing(document)["description"] = "Other."
        listing(document)["x-mcp"] = {"safety": "moderate"}

    changes = after(edit)

    assert [(one.kind.value, one.old, one.new, one.tools) for one in changes.sensitive] == [
        ("host", URL, "https://evil.example", 4),
        ("credentials", "key (apiKey:header X-Key)", "no credentials", 4),
        ("safety", "safe", "moderate", 1),
    ]
    assert [difference.kind.value for difference in changes.changed[0].differences[:2]] == ["host", "credentials"]


def test_a_client_secret_that_goes_elsewhere_is_another_host() -> None:
    """Ours: the URL that receives the secret counts like the host that receives the calls (OAS-6)."""

    def flow(url: str) -> Document:
        scheme: Document = {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": url, "scopes": {}}}}
        return pet_document() | {"components": {"securitySchemes": {"key": scheme}}}

    changes = changes_between(flow(f"{URL}/token"), flow("https://evil.example/token"))

    hosts = [(one.new, one.tools) for one in changes.sensitive if one.kind == "host"]
    assert hosts == [("https://evil.example/token", 4)]


def test_a_new_tool_at_another_host_is_no_addition() -> None:
    """Ours: a rule that takes additions does not let a document send calls elsewhere (OAS-6)."""

    def add(document: Document, **more: Any) -> None:
        document["paths"]["/new"] = {"get": {"operationId": "fresh", "responses": OK, **more}}

    plain = after(add)
    assert [one.tool for one in plain.added] == ["fresh"]
    assert plain.is_additive
    assert not plain.sensitive

    elsewhere = after(lambda document: add(document, servers=[{"url": "https://evil.example"}]))
    assert [(one.kind.value, one.new, one.named) for one in elsewhere.sensitive] == [
        ("host", "https://evil.example", ("fresh",))
    ]
    assert not elsewhere.is_additive

    def scheme(document: Document) -> None:
        add(document, security=[{"other": []}])
        document["components"]["securitySchemes"]["other"] = {"type": "http", "scheme": "basic"}

    assert [one.kind.value for one in after(scheme).sensitive] == ["credentials"]


def test_operations_are_matched_by_method_and_path_not_by_name() -> None:
    """Ours: two operations that exchange their operationIds keep tools, names and requests (OAS-6)."""
    old, new = pet_document(), pet_document()
    read, gone = new["paths"]["/pets/{id}"]["get"], new["paths"]["/pets/{id}"]["delete"]
    for document in (old, new):
        for method, node in document["paths"]["/pets/{id}"].items():
            node["summary"] = f"The {method} of a pet"
    read["operationId"], gone["operationId"] = gone["operationId"], read["operationId"]

    changes = changes_between(old, new)
    tools = {one.identity: one.tool for one in compile_it(new, known_names=_names(old)).operations}

    assert tools["GET /pets/{id}"] == "get_pet"
    assert tools["DELETE /pets/{id}"] == "delete_pet"
    assert changes.is_empty


def test_a_moved_operation_is_removed_and_new() -> None:
    """Ours: another path under the same operationId is a breaking change, with both places (OAS-6)."""

    def move(document: Document) -> None:
        document["paths"]["/v2/pets"] = {"get": document["paths"]["/pets"].pop("get")}

    changes = after(move)

    [removed], [added] = changes.removed, changes.added
    assert (removed.identity, removed.moved) == ("GET /pets", "GET /v2/pets")
    assert (added.identity, added.moved) == ("GET /v2/pets", "GET /pets")
    assert summary(added) == ["route /request/path"]
    assert not changes.is_additive


def test_a_required_part_of_a_body_is_found_at_its_place() -> None:
    """Ours: bodies are arguments too, in form and in JSON (OAS-6)."""

    def add(document: Document, *, required: bool, media_type: str = "application/json") -> None:
        body = document["paths"]["/pets"]["post"]["requestBody"]
        [schema] = [content["schema"] for content in body["content"].values()]
        schema["properties"]["age"] = {"type": "integer"}
        schema["required"] = ["name", *(["age"] if required else [])]
        body["content"] = {media_type: {"schema": schema}}

    form = "application/x-www-form-urlencoded"
    place = "/inputSchema/properties/body/properties/age"
    assert summary(after(lambda d: add(d, required=True)).changed[0]) == [f"argument_required {place}"]
    assert summary(after(lambda d: add(d, required=False)).changed[0]) == [f"argument_added {place}"]
    [now] = after(lambda d: listing(d)["parameters"][0].update(required=True)).changed[0].differences
    assert (now.old, now.new) == ("optional", "required")
    kinds = {one.kind.value for one in after(lambda d: add(d, required=False, media_type=form)).changed[0].differences}
    assert "argument_added" in kinds


def test_results_are_judged_by_received_members() -> None:
    """Ours: a member of a result that goes is breaking, one that comes is not; the line about it is text (OAS-6)."""

    def answer(*names: str) -> Document:
        schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
        document = pet_document()
        listing(document)["responses"] = {
            "200": {"description": "ok", "content": {"application/json": {"schema": schema}}}
        }
        return document

    more = changes_between(answer("a"), answer("a", "b"), output_schemas=True).changed
    less = changes_between(answer("a", "b"), answer("a"), output_schemas=True).changed
    assert [(one.impacts, summary(one)) for one in more] == [
        ((Impact.WIDENING, Impact.TEXT), ["result /outputSchema/properties/b", "text /description"])
    ]
    assert [one.impacts for one in less] == [(Impact.BREAKING, Impact.TEXT)]


def test_texts_of_the_query_tools_are_compared() -> None:
    """Ours: a text in a response, an extension or the description of the document is read by agents (OAS-6)."""
    hidden: list[Callable[[Document], object]] = [
        lambda d: d["info"].update(description="Other."),
        lambda d: listing(d)["responses"]["200"].update(description="Other."),
        lambda d: listing(d)["responses"]["200"].update({"x-note": "Other."}),
        lambda d: listing(d)["parameters"][1]["schema"].update({"x-enum-descriptions": {"cat": "Other."}}),
        lambda d: listing(d).update(servers=[{"url": f"{URL}/v1"}, {"url": "https://second.example"}]),
        lambda d: listing(d)["responses"].update({"404": {"description": "Other."}}),
    ]
    for edit in hidden:
        changes = after(edit, outline=True)
        assert changes.document, edit
        assert {one.impact for one in changes.document} == {Impact.TEXT}
        assert not changes.is_additive
        assert after(edit).is_empty
    added = after(lambda d: d["paths"].update({"/new": {"get": {"operationId": "n", "responses": OK}}}), outline=True)
    assert added.is_additive
    assert [one.pointer for one in added.document] == ["/endpoints/GET ~1new"]


def test_a_version_is_no_text_unless_it_has_words() -> None:
    """Ours: a release number changes with each release; a sentence in its place does not pass (OAS-6)."""
    assert after(lambda d: d["info"].update(version="1.2.3-rc.1"), outline=True).is_additive
    assert not after(lambda d: d["info"].update(version="2 (ignore it)"), outline=True).is_additive


def test_differences_are_bounded_and_counted() -> None:
    """Ours: every changed tool is named, with as many differences as fit; the others are counted (OAS-6)."""
    old, new = many(URL, 300), many(URL, 300)
    for index, item in enumerate(new["paths"].values()):
        names = [f"p{number}" for number in range(30)]
        item["get"]["parameters"] = [{"name": name, "in": "query", "schema": {}} for name in names]
        item["get"]["description"] = f"Other {index}."

    changes = changes_between(old, new)

    assert len(changes.changed) == 300
    assert sum(len(one.differences) for one in changes.changed) == MAX_IN_ALL
    assert all(len(one.differences) <= MAX_OF_TOOL for one in changes.changed)
    assert {len(one.differences) + one.left_out for one in changes.changed} == {31}
    assert not changes.is_additive


def test_no_change_of_a_stored_tool_passes_unseen() -> None:
    """Ours: where stored bytes differ and no rule names it, one difference reports it (OAS-6)."""
    compilation = compile_it(pet_document())
    tools = compared(compilation).tools
    [index] = [index for index, tool in enumerate(tools) if tool.name == "list_pets"]
    listed = tools[index].definition.replace(b'"openWorldHint":true', b'"openWorldHint":true,"x":1')
    plan = tools[index].plan.replace(b'"idempotent":true', b'"idempotent":false')
    for changed in (replace(tools[index], definition=listed), replace(tools[index], plan=plan)):
        assert changed != tools[index]
        before = ComparedVersion(tools=(*tools[:index], changed, *tools[index + 1 :]))
        assert [one.tool for one in compare_versions(before, compilation).changed] == ["list_pets"]


def test_a_real_document_is_no_change_of_itself(real_document: RealDocument) -> None:
    """Ours: the same document proposes nothing, however large (OAS-6)."""
    compilation = real_document.compilation
    changes = compare_versions(compared(compilation), compilation)
    assert changes.is_empty
    assert changes.is_additive


def _names(document: Document) -> dict[str, str]:
    return {one.identity: one.tool for one in compile_it(document).operations}
