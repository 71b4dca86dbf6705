"""The budget of a list: the order of omissions, the parts that are always kept, and the report about them."""

import json
from typing import Any

import pytest

from gateway.domain.listed.definition import served_bytes
from gateway.domain.sources import Compilation
from gateway.domain.tools import FULL_INPUT_META, digest_input
from gateway.domain.updates.import_reports import Status
from gateway.openapi.operation.limits import COMPACT_TOOL_BYTES, LIST_BYTES, MAX_BRIEF_LENGTH, TOOL_BYTES
from gateway.openapi.operation.list_budget import SHORTENED
from gateway.openapi.operation.schema_assembly import compiles
from gateway.openapi.query.tools import DEFINITIONS, DETAILS
from tests.support.grammars import WORDS, search_api
from tests.support.openapi import accepts, compile_it, definition_of, fate, only, operation, with_body, with_parameter


@pytest.fixture(scope="module")
def searched() -> Compilation:
    """The compilation of a document like Elasticsearch's."""
    return compile_it(search_api())


def wide(*, properties: int, words: str = WORDS, **more: Any) -> dict[str, Any]:
    """A schema with this many described properties, the first of them required."""
    members = {f"p{number}": {"type": "string", "description": words} for number in range(properties)}
    return {"type": "object", "required": ["p0"], "properties": members, **more}


def deep(levels: int, *, width: int = 3) -> dict[str, Any]:
    """Objects inside each other, with described members at each level."""
    schema: dict[str, Any] = {"type": "string"}
    for level in range(levels):
        members = {f"l{level}_{number}": {"type": "string", "description": WORDS} for number in range(width)}
        schema = {"type": "object", "required": ["in"], "properties": {"in": schema, **members}}
    return schema


def test_a_large_grammar_becomes_a_small_list(searched: Compilation) -> None:
    """Ours: 450 tools, 150 of them with a grammar of 300 kB, list at most 2 MB with every required argument (OAS-9)."""
    whole = sum(len(made.input_schema or made.definition) for made in searched.operations)

    assert whole > 20_000_000
    assert searched.report.tools_list_bytes <= LIST_BYTES
    for made in searched.operations:
        schema = definition_of(made)["inputSchema"]
        assert set(schema["required"]) == ({"index", "body"} if "search" in made.tool else {"index"})
        if made.input_schema is not None:
            assert schema["properties"]["body"]["required"] == ["query", "size"]
            assert compiles(schema)


def test_every_listed_tool_keeps_the_budget_of_one_tool(searched: Compilation) -> None:
    """Ours: no entry is above 16 kB; of a list that is too large, entries become tighter until it fits (OAS-9)."""
    few = [len(made.definition) for made in compile_it(search_api(searches=3, plain=0)).operations]
    many = [len(made.definition) for made in searched.operations]

    assert COMPACT_TOOL_BYTES < min(few) <= max(few) <= TOOL_BYTES
    assert max(many) <= TOOL_BYTES
    assert sum(COMPACT_TOOL_BYTES // 2 < size <= COMPACT_TOOL_BYTES for size in many) > 20


@pytest.mark.parametrize("name", ["wide", "deep", "inline", "parameters", "enum", "choices", "arrays"])
def test_a_listed_schema_accepts_all_that_the_full_one_accepts(name: str) -> None:
    """Ours: a client that validates against the list refuses nothing that a call would take (OAS-9)."""
    value: Any = {"p0": "x"}
    match name:
        case "deep":
            document, value = with_body(deep(16, width=12)), "x"
            for _ in range(16):
                value = {"in": value}
        case "inline":
            document = with_body(wide(properties=3, additionalProperties=wide(properties=200)))
        case "parameters":
            parameter = {"name": "v", "in": "query", "required": True, "schema": wide(properties=300)}
            document = with_parameter({**parameter, "style": "deepObject"})
        case "enum":
            enum = [f"value-{number}" for number in range(3_000)]
            document, value = with_body({"type": "string", "enum": enum}), "value-2999"
        case "choices":
            branches = [wide(properties=30, title=f"B{number}") for number in range(20)]
            document = with_body({"oneOf": branches, "not": {"required": ["zz"]}})
        case "arrays":
            document, value = with_body({"type": "array", "items": wide(properties=300), "minItems": 1}), [{"p0": "x"}]
        case _:
            document = with_body(wide(properties=300))
    made = only(document)
    listed = definition_of(made)["inputSchema"]
    arguments = {"v" if name == "parameters" else "body": value}

    assert made.input_schema is not None
    assert len(made.definition) <= TOOL_BYTES
    assert compiles(listed)
    assert accepts(json.loads(made.input_schema), arguments)
    assert accepts(listed, arguments)


BIG: dict[str, Any] = {
    "type": "object",
    "required": [f"m{number}" for number in range(25)],
    "properties": {
        f"m{number}": {"type": "object", "properties": {f"n{inner}": {"description": WORDS} for inner in range(8)}}
        for number in range(200)
    },
}
REF: dict[str, Any] = {"$ref": "#/components/schemas/Big"}


@pytest.mark.parametrize(
    ("body", "own"),
    [
        (REF, set[str]()),
        ({**REF, "required": ["m30"]}, {"m30"}),
        ({**REF, "properties": {"x": {"type": "string"}}, "required": ["x"]}, {"x"}),
        ({"allOf": [REF]}, set[str]()),
        ({"allOf": [REF, {"properties": {"x": {}, "m1": {"minProperties": 1}}, "required": ["x"]}]}, {"x"}),
        ({"allOf": [{"allOf": [REF]}, {"$ref": "#/components/schemas/Other"}]}, {"y"}),
    ],
)
def test_required_members_are_listed_through_references_and_parts(body: dict[str, Any], own: set[str]) -> None:
    """Ours: an agent that fills in what the list requires makes a call that is accepted (OAS-9)."""
    other = {"type": "object", "required": ["y"], "properties": {"y": {"type": "string"}}}
    made = only(with_body(body, components={"schemas": {"Big": BIG, "Other": other}}))
    listed = definition_of(made)["inputSchema"]
    value: dict[str, Any] = {name: {"n0": 1} for name in BIG["required"]} | {"m30": {}, "x": "a", "y": "b"}

    assert made.input_schema is not None
    assert set(listed["properties"]["body"]["required"]) == {*BIG["required"], *own}
    assert set(listed["properties"]["body"]["properties"]) == {*BIG["properties"], *own}
    assert accepts(json.loads(made.input_schema), {"body": value})
    assert accepts(listed, {"body": value})
    assert not accepts(listed, {"body": {}})


def test_branches_that_do_not_fit_keep_the_names_of_their_members() -> None:
    """Ours: the rest of the budget names the members of each branch (OAS-9)."""
    other = {**BIG, "required": ["m7"]}
    body = {"anyOf": [REF, {"$ref": "#/components/schemas/Other"}]}
    made = only(with_body(body, components={"schemas": {"Big": BIG, "Other": other}}))
    defined = definition_of(made)["inputSchema"]["$defs"]

    assert len(made.definition) <= TOOL_BYTES
    assert set(defined["Big"]["properties"]) == set(BIG["properties"])
    assert (defined["Big"]["required"], defined["Other"]["required"]) == (BIG["required"], ["m7"])


def test_required_members_beyond_the_budget_are_left_out() -> None:
    """Ours: more required names than fit do not make a list of any size (OAS-9)."""
    names = [f"a-long-name-of-a-member-{number}" for number in range(1_200)]
    made = only(with_body({"type": "object", "required": names, "properties": dict.fromkeys(names, True)}))

    assert made.input_schema is not None
    assert len(made.definition) <= TOOL_BYTES


def test_members_have_their_types_where_these_fit() -> None:
    """Ours: types are listed before names alone (OAS-9)."""
    made = only(with_body(REF, components={"schemas": {"Big": BIG}}))

    assert definition_of(made)["inputSchema"]["properties"]["body"]["properties"]["m0"] == {"type": "object"}


def test_descriptions_of_deep_properties_go_before_levels() -> None:
    """Ours: the first omitted parts cost an agent least (OAS-9)."""
    schema = {"type": "object", "properties": {f"a{number}": deep(3, width=12) for number in range(5)}}
    listed = only(with_body(schema))
    text = listed.definition.decode()

    assert listed.input_schema is not None
    assert "l0_11" in text
    assert SHORTENED not in json.dumps(definition_of(listed)["inputSchema"], ensure_ascii=False)
    assert text.count(WORDS) < listed.input_schema.decode().count(WORDS)


def test_shared_schemas_keep_their_descriptions_as_far_as_there_is_room() -> None:
    """Ours: the nearest ones are described (OAS-9)."""
    schemas = {f"S{number}": {**wide(properties=2), "title": "T" * 150} for number in range(40)}
    body = {"type": "object", "properties": {name: {"$ref": f"#/components/schemas/{name}"} for name in schemas}}
    defined = definition_of(only(with_body(body, components={"schemas": schemas})))["inputSchema"]["$defs"].values()
    grammar = definition_of(compile_it(search_api(searches=1, plain=0)).operations[0])["inputSchema"]["$defs"].values()

    assert 0 < sum(WORDS in json.dumps(schema) for schema in defined) < 40
    assert any(schema == {"type": "object", "description": SHORTENED} for schema in grammar)


def test_the_output_schema_is_the_first_to_go() -> None:
    """Ours: an agent can call without it (OAS-9)."""
    answer = {"200": {"description": "d", "content": {"application/json": {"schema": wide(properties=150)}}}}
    node = {"parameters": [{"name": "v", "in": "query", "schema": {"type": "string"}}], "responses": answer}
    report = fate(operation(node), output_schemas=True)
    made = only(operation(node), output_schemas=True)

    assert report.status is Status.OK
    assert "the output schema is omitted from the tool list" in report.notes[0]
    assert made.input_schema is None
    assert "outputSchema" not in definition_of(made)


@pytest.mark.parametrize(
    ("levels", "omitted", "notified"),
    [
        (
            3,
            "the output schema and descriptions of nested arguments",
            "Some descriptions of nested arguments are omitted",
        ),
        (
            8,
            "the output schema, descriptions of nested arguments and deeply nested parts of the arguments",
            'Parts of the arguments are omitted, often marked "…"',
        ),
    ],
)
def test_report_and_agent_get_every_step_of_shortening(levels: int, omitted: str, notified: str) -> None:
    """Ours: a tool that lost only descriptions is not described as incomplete, and an earlier step is not forgotten
    (OAS-9).
    """
    answer = {"200": {"description": "d", "content": {"application/json": {"schema": wide(properties=150)}}}}
    document = with_body({"type": "object", "properties": {f"a{n}": deep(levels, width=12) for n in range(5)}})
    document["paths"]["/x"]["post"]["responses"] = answer
    [note] = fate(document, output_schemas=True).notes
    listed = definition_of(only(document, output_schemas=True))

    assert note.startswith(f"{omitted} are omitted from the tool list: ")
    assert listed["description"].rpartition("\n\n")[2].startswith(f"{notified}: `get_endpoint_details` with ")
    assert (SHORTENED in json.dumps(listed["inputSchema"], ensure_ascii=False)) is (levels == 8)
    assert "Returns: 200, object (p0, p1" in listed["description"]


def test_the_report_has_omitted_parts_and_the_size_of_the_list(searched: Compilation) -> None:
    """Ours: shortened tools are reported, and the list is compared with usual contexts (OAS-9)."""
    report = searched.report
    noted = [item for item in report.operations if item.notes]

    assert len(noted) == 150
    assert all(item.status is Status.OK for item in noted)
    assert "deeply nested parts of the arguments are omitted from the tool list: " in noted[0].notes[0]
    assert [context.tokens for context in report.contexts] == [32_000, 128_000, 200_000, 1_000_000]
    assert report.contexts[1].share == round(report.estimated_tokens / 128_000, 4)
    assert "of a context of 128,000; expose the source to the query tools" in report.notes[0]


def test_the_tool_for_details_is_part_of_the_price() -> None:
    """Ours: a shortened tool needs the one that has the rest (OAS-9)."""
    short, plain = compile_it(search_api(searches=1, plain=0)), compile_it(search_api(searches=0, plain=1))

    assert short.report.tools_listed == 2
    assert plain.report.tools_listed == 1
    assert short.report.tools_list_bytes == len(b'{"tools":[]}') + 1 + sum(
        map(served_bytes, (DEFINITIONS[DETAILS], short.operations[0].definition))
    )


def test_a_shortened_tool_refers_to_its_details_and_changes_with_them() -> None:
    """Ours: two schemas that differ only where the list does not show it are two tools (OAS-9)."""
    changed, deeper = deep(16, width=40), deep(16, width=40)
    inner = deeper
    while inner["properties"]["in"]["type"] == "object":
        inner = inner["properties"]["in"]
    inner["properties"]["in"]["maxLength"] = 3
    same, differs = only(with_body(changed)), only(with_body(deeper))

    assert same.input_schema is not None
    assert differs.input_schema is not None
    assert same.definition != differs.definition
    assert definition_of(same)["inputSchema"] == definition_of(differs)["inputSchema"]
    assert definition_of(same)["_meta"] == {FULL_INPUT_META: digest_input(same.input_schema)}
    assert '`get_endpoint_details` with the operation "op"' in definition_of(same)["description"]


def test_names_of_arguments_are_always_kept() -> None:
    """Ours: a thousand arguments are a thousand names; nothing required is left out (OAS-9)."""
    parameters = [
        {"name": f"parameter-{number}", "in": "query", "required": number % 2 == 0, "schema": {"type": "string"}}
        for number in range(900)
    ]
    made = only(operation({"parameters": parameters}))
    schema = definition_of(made)["inputSchema"]

    assert len(schema["properties"]) == 900
    assert len(schema["required"]) == 450


def many(*, tools: int, arguments: int, words: str, about: str = "") -> dict[str, Any]:
    """A document whose tools all have the same arguments, the first of them required."""
    parameters: dict[str, Any] = {
        f"a{n}": {
            "name": f"a{n}",
            "in": "query",
            "required": n == 0,
            "schema": {"type": "string"},
            "description": words,
        }
        for n in range(arguments)
    }
    shared = [{"$ref": f"#/components/parameters/{name}"} for name in parameters]
    paths = {
        f"/p{number}": {"parameters": shared, "get": {"operationId": f"get{number}", "description": about}}
        for number in range(tools)
    }
    return operation({}) | {"paths": paths, "components": {"parameters": parameters}}


def test_many_middling_tools_keep_the_budget_of_a_list() -> None:
    """Ours: where no tool is large and the list is, descriptions of arguments are cut as far as is needed (OAS-9)."""
    made = compile_it(many(tools=180, arguments=20, words="Begins here. " + "x" * 600))

    assert LIST_BYTES * 0.95 < made.report.tools_list_bytes <= LIST_BYTES
    brief = [one for one in made.operations if one.input_schema is not None]
    assert 0 < len(brief) < len(made.operations)
    listed = definition_of(brief[0])
    assert listed["inputSchema"]["required"] == ["a0"]
    assert len(listed["inputSchema"]["properties"]) == 20
    shown = listed["inputSchema"]["properties"]["a7"]["description"]
    assert shown.startswith("Begins here.")
    assert shown.endswith(SHORTENED)
    assert len(shown) == MAX_BRIEF_LENGTH
    assert listed["_meta"] == {FULL_INPUT_META: digest_input(brief[0].input_schema or b"")}
    assert f'operation "{brief[0].tool}"' in listed["description"]
    assert len(json.loads(brief[0].input_schema or b"")["properties"]["a7"]["description"]) > 600
    [note] = next(one for one in made.report.operations if one.tool == brief[0].tool).notes
    assert note.startswith("the ends of long descriptions of arguments are omitted")
    assert 'Descriptions that end with "…" are cut: ' in listed["description"]
    assert not any("limit 2,000,000" in note for note in made.report.notes)


def test_a_shortened_tool_lists_relaxations_by_its_examples() -> None:
    """Ours: an example relaxes a shared schema also where an earlier tool was shortened with it (OAS-9)."""
    order = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 2}}}
    members = {name: {"$ref": f"#/components/schemas/{name}"} for name in ("Order", "Far")}
    body = {"schema": {"type": "object", "properties": members}}
    document = operation({}) | {"components": {"schemas": {"Order": order, "Far": wide(properties=400)}}}
    document["paths"] = {
        path: {"post": {"operationId": path[1:], "requestBody": {"content": {"application/json": media}}}}
        for path, media in (("/first", body), ("/second", {**body, "example": {"Order": {"a": "long"}}}))
    }
    first, second = compile_it(document).operations

    assert first.input_schema is not None
    assert second.input_schema is not None
    assert accepts(definition_of(second)["inputSchema"], {"body": {"Order": {"a": "long"}}})
    assert accepts(json.loads(second.input_schema), {"body": {"Order": {"a": "long"}}})


def test_output_schemas_of_a_list_go_before_its_arguments() -> None:
    """Ours: a list that is too large with output schemas loses those that save most, and nothing else (OAS-9)."""
    large = {"type": "object", "properties": {f"r{n}": {"type": "string", "description": WORDS} for n in range(40)}}
    document = many(tools=250, arguments=10, words="Begins here. " + "x" * 300)
    answer = {"200": {"description": "ok", "content": {"application/json": {"schema": large}}}}
    for item in document["paths"].values():
        item["get"]["responses"] = answer
    made = compile_it(document, output_schemas=True)

    definitions = [definition_of(one) for one in made.operations]
    assert made.report.tools_list_bytes <= LIST_BYTES
    assert 0 < sum("outputSchema" in one for one in definitions) < len(definitions)
    assert all(one.input_schema is None for one in made.operations)
    assert all(len(one["inputSchema"]["properties"]["a7"]["description"]) > 300 for one in definitions)


def test_a_list_above_its_budget_is_a_note() -> None:
    """Ours: descriptions of tools are kept whatever they take together, and the report names the excess (OAS-9)."""
    made = compile_it(many(tools=1_100, arguments=2, words="y" * 200, about="x" * 1_900))

    assert made.report.tools_list_bytes > LIST_BYTES
    assert any("bytes (limit 2,000,000); descriptions of tools" in note for note in made.report.notes)
    assert all(definition_of(one)["inputSchema"]["required"] == ["a0"] for one in made.operations)
