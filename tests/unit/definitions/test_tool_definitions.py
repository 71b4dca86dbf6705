"""A tool definition keeps its contract, and is listed unchanged."""

import json
from enum import IntEnum
from typing import Any

import pytest

from gateway.definitions.contract.tools import ToolDefinition, validate_tool_definition
from gateway.errors import BadInput, DefinitionInvalid, ToolValidationError

PLAIN: dict[str, Any] = {"type": "object", "properties": {}}

CONFORMANCE: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "other": {"$ref": "#addressDef"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string", "x-vendor": {"anything": [1, None, 2.5]}},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["name"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["name"]},
    "additionalProperties": False,
}


def tool(**more: Any) -> dict[str, Any]:
    return {"name": "t", "description": "Does it.", "inputSchema": PLAIN} | more


def schema(**more: Any) -> dict[str, Any]:
    return tool(inputSchema=PLAIN | more)


def refusal(raw: object) -> ToolValidationError:
    with pytest.raises(ToolValidationError) as caught:
        validate_tool_definition(raw)
    return caught.value


def test_a_definition_is_listed_keyword_for_keyword() -> None:
    """Ours: clients see the given definition, unknown keywords of schemas included (TDF-2)."""
    raw = tool(
        title="T",
        inputSchema=CONFORMANCE,
        outputSchema={"type": "object", "properties": {"x": {}}},
        annotations={"title": "T", "readOnlyHint": True, "openWorldHint": False},
        icons=[{"src": "https://example.com/i.svg", "mimeType": "image/svg+xml", "sizes": ["any"], "theme": "dark"}],
        _meta={"com.example/a-b.c_d": [1], "plain": {}},
    )

    assert json.dumps(validate_tool_definition(raw).to_wire(), sort_keys=True) == json.dumps(raw, sort_keys=True)


def test_the_order_of_a_schemas_keywords_stays() -> None:
    """Ours: keyword for keyword means in order too."""
    listed = validate_tool_definition(tool(inputSchema=CONFORMANCE)).to_wire()["inputSchema"]

    assert json.dumps(listed) == json.dumps(CONFORMANCE)


def test_nothing_that_was_not_given_is_listed() -> None:
    """MCP: no extra fields on the wire."""
    assert validate_tool_definition(tool()).to_wire() == tool()


def test_a_definition_is_a_copy() -> None:
    """Ours: a definition holds a copy, and hands out copies."""
    raw = schema(properties={"a": {"type": "string"}})
    definition = validate_tool_definition(raw)
    raw["inputSchema"]["properties"]["a"]["type"] = "integer"
    listed: Any = definition.to_wire()
    listed["inputSchema"]["properties"].clear()

    assert definition.to_wire()["inputSchema"] == PLAIN | {"properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize("field", ["name", "description", "inputSchema"])
def test_a_missing_field_is_named(field: str) -> None:
    """Ours: the message names the offending field (TDF-1)."""
    raw = tool()
    del raw[field]

    error = refusal(raw)

    assert error.message.startswith(field)
    assert [fault.pointer for fault in error.faults] == [f"/{field}"]


@pytest.mark.parametrize(
    ("raw", "pointer"),
    [
        (tool(name=""), "/name"),
        (tool(name="  "), "/name"),
        (tool(name="x" * 65), "/name"),
        (tool(name="a b"), "/name"),
        (tool(name="a\n"), "/name"),
        (tool(name="é"), "/name"),
        (tool(name=5), "/name"),
        (tool(name=None), "/name"),
        (tool(description=""), "/description"),
        (tool(description=" \n"), "/description"),
        (tool(description="x" * 16_385), "/description"),
        (tool(description="a\u202eb"), "/description"),
        (tool(description="a\x00b"), "/description"),
        (tool(title=""), "/title"),
        (tool(title=None), "/title"),
        (tool(inputSchema=None), "/inputSchema"),
        (tool(inputSchema=True), "/inputSchema"),
        (tool(inputSchema={}), "/inputSchema/type"),
        (tool(inputSchema={"type": "object"}), "/inputSchema/properties"),
        (tool(inputSchema={"type": ["object"], "properties": {}}), "/inputSchema/type"),
        (tool(inputSchema={"type": "array", "properties": {}}), "/inputSchema/type"),
        (tool(inputSchema={"type": "object", "properties": []}), "/inputSchema/properties"),
        (tool(outputSchema=[]), "/outputSchema"),
        (tool(outputSchema={"type": "objekt"}), "/outputSchema/type"),
        (tool(annotations=[]), "/annotations"),
        (tool(annotations={"readOnlyHint": "yes"}), "/annotations/readOnlyHint"),
        (tool(annotations={"readOnlyHint": 1}), "/annotations/readOnlyHint"),
        (tool(annotations={"title": 1}), "/annotations/title"),
        (tool(annotations={"hint": True}), "/annotations/hint"),
        (tool(input_schema=PLAIN), "/input_schema"),
        (tool(execution={"taskSupport": "perhaps"}), "/execution/taskSupport"),
        (tool(execution={"taskSupport": ["optional"]}), "/execution/taskSupport"),
        (tool(execution={"slow": True}), "/execution/slow"),
        (tool(execution="required"), "/execution"),
        (tool(handler="x"), "/handler"),
        (tool(icons={}), "/icons"),
        (tool(icons=[{}]), "/icons/0/src"),
        (tool(icons=[{"src": "http://example.com/i.png"}]), "/icons/0/src"),
        (tool(icons=[{"src": "javascript:alert(1)"}]), "/icons/0/src"),
        (tool(icons=[{"src": "file:///etc/passwd"}]), "/icons/0/src"),
        (tool(icons=[{"src": "https://user@example.com/i.png"}]), "/icons/0/src"),
        (tool(icons=[{"src": "https://[x/i.png"}]), "/icons/0/src"),
        (tool(icons=[{"src": "https://example.com/a b"}]), "/icons/0/src"),
        (tool(icons=[{"src": "data:image/svg+xml;base64,PHN2Zz4="}]), "/icons/0/src"),
        (tool(icons=[{"src": "data:image/png;base64,???"}]), "/icons/0/src"),
        (tool(icons=[{"src": "https://example.com", "mimeType": "png"}]), "/icons/0/mimeType"),
        (tool(icons=[{"src": "https://example.com", "sizes": ["big"]}]), "/icons/0/sizes/0"),
        (tool(icons=[{"src": "https://example.com", "sizes": "48x48"}]), "/icons/0/sizes"),
        (tool(icons=[{"src": "https://example.com", "theme": "blue"}]), "/icons/0/theme"),
        (tool(icons=[5]), "/icons/0"),
        (tool(icons=[{"src": "https://example.com"}] * 17), "/icons"),
        (tool(_meta=[]), "/_meta"),
        (tool(_meta={"": 1}), "/_meta/"),
        (tool(_meta={"a b": 1}), "/_meta/a b"),
        (tool(_meta={"-a": 1}), "/_meta/-a"),
        (tool(_meta={"1.com/a": 1}), "/_meta/1.com~1a"),
        (tool(_meta={"io.modelcontextprotocol/a": 1}), "/_meta/io.modelcontextprotocol~1a"),
        (tool(_meta={"mcp.dev/a": 1}), "/_meta/mcp.dev~1a"),
        (tool(_meta={"gateway/a": 1}), "/_meta/gateway~1a"),
        (tool(_meta={"a": "x" * 17_000}), "/_meta"),
        ([], ""),
        (None, ""),
        ("tool", ""),
    ],
)
def test_a_fault_points_at_the_field(raw: object, pointer: str) -> None:
    """Ours: unknown fields, wrong types and wrong values are refused at their place (TDF-1, TDF-2)."""
    assert pointer in [fault.pointer for fault in refusal(raw).faults]


@pytest.mark.parametrize("name", ["a", "x" * 64, "get.pet-by_id", "ns/tool", "A9"])
def test_a_name_of_the_protocol_is_taken(name: str) -> None:
    """MCP: letters, digits, `_ . / -`, at most 64."""
    assert validate_tool_definition(tool(name=name)).name == name


@pytest.mark.parametrize(
    "raw",
    [
        tool(inputSchema=PLAIN | {"default": float("nan")}),
        tool(inputSchema=PLAIN | {"default": float("inf")}),
        tool(inputSchema=PLAIN | {"default": 2**70}),
        tool(inputSchema=PLAIN | {"default": {1, 2}}),
        tool(inputSchema=PLAIN | {"default": "\ud800"}),
        tool(inputSchema=PLAIN | {"default": {1: 2}}),
        tool(inputSchema=PLAIN | {"default": {"\ud800": 2}}),
        tool(inputSchema=PLAIN | {"default": b"x"}),
    ],
)
def test_values_that_json_lacks_are_refused(raw: object) -> None:
    """Ours: Python values that could not be listed are refused when they are registered."""
    assert refusal(raw).faults[0].pointer.startswith("/inputSchema/default")


def test_a_value_that_holds_itself_is_refused() -> None:
    """Ours: no endless walk."""
    loop: dict[str, Any] = {}
    loop["default"] = loop

    assert "levels" in refusal(tool(inputSchema=PLAIN | loop)).message


def test_up_to_twenty_faults_are_reported_at_once() -> None:
    """Ours: one round trip shows all of them; a hostile body does not buy a huge answer."""
    error = refusal(tool(**{f"x{number}": 1 for number in range(50)}) | {"name": "", "title": 5})

    assert len(error.faults) == 20
    assert "and 19 more" in error.message


def test_a_refusal_is_short_and_printable_for_every_input() -> None:
    """Ours: a hostile name causes neither a huge answer nor a line on a terminal."""
    error = refusal(tool(**{"\x1b[2J\n" + "x" * 100_000: 1}))

    assert len(error.message) < 500
    assert error.message.isprintable()
    assert len(error.faults[0].pointer) <= 1_000
    assert refusal(tool(_meta={"gateway/x": 1})).message.startswith("_meta.gateway/x: ")


class Word(str):
    """A word of a schema that calls itself otherwise, as members of enumerations do."""

    __slots__ = ()

    def __str__(self) -> str:
        """Its name for itself."""
        return "Word.OBJECT"


class Most(IntEnum):
    """A number of a schema, as code may write it."""

    FEW = 3


def test_members_of_enumerations_are_their_values() -> None:
    """Ours: Python code may write either."""
    written: dict[str, Any] = {"type": Word("object"), "properties": {}, "maxProperties": Most.FEW}
    listed = validate_tool_definition(tool(inputSchema=written))

    assert json.dumps(listed.to_wire()["inputSchema"]) == '{"type": "object", "properties": {}, "maxProperties": 3}'
    assert type(listed.input_schema["type"]) is str


def test_tuples_count_as_lists() -> None:
    """Ours: Python code may write either."""
    listed = validate_tool_definition(schema(required=())).to_wire()

    assert listed == schema(required=[])


def test_the_error_is_of_its_own_class() -> None:
    """Ours: callers can distinguish it from others (TDF-3)."""
    error = refusal({})

    assert isinstance(error, DefinitionInvalid)
    assert isinstance(error, BadInput)
    assert error.code == "definition.tool_invalid"


def test_a_definition_of_code_is_listed_alike() -> None:
    """Ours: Python code may build the dataclass itself."""
    made = ToolDefinition(name="t", description="Does it.", input_schema=PLAIN)

    assert made.to_wire() == tool()


@pytest.mark.parametrize(
    ("mark", "pointer"),
    [
        ({"properties": {"r": {"type": "string", "x-mcp-header": "Region"}}}, None),
        (
            {"properties": {"o": {"type": "object", "properties": {"r": {"type": "integer", "x-mcp-header": "R"}}}}},
            None,
        ),
        ({"properties": {"x-mcp-header": {"type": "number"}}}, None),
        ({"properties": {"r": {"type": "string", "x-mcp-header": ""}}}, "/properties/r/x-mcp-header"),
        ({"properties": {"r": {"type": "string", "x-mcp-header": "a b"}}}, "/properties/r/x-mcp-header"),
        ({"properties": {"r": {"type": "string", "x-mcp-header": 5}}}, "/properties/r/x-mcp-header"),
        ({"properties": {"r": {"type": "number", "x-mcp-header": "R"}}}, "/properties/r/x-mcp-header"),
        (
            {"properties": {"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "R"}}}},
            "/properties/a/items/x-mcp-header",
        ),
        ({"anyOf": [{"type": "string", "x-mcp-header": "R"}]}, "/anyOf/0/x-mcp-header"),
        (
            {
                "properties": {
                    "a": {"type": "string", "x-mcp-header": "R"},
                    "b": {"type": "string", "x-mcp-header": "r"},
                }
            },
            "/properties/b/x-mcp-header",
        ),
    ],
)
def test_a_mirrored_header_is_one_that_clients_can_mirror(mark: dict[str, Any], pointer: str | None) -> None:
    """MCP: a client drops a tool whose header marks break the rules, so such a tool is refused here."""
    if pointer is None:
        validate_tool_definition(schema(**mark))
    else:
        assert refusal(schema(**mark)).faults[0].pointer == f"/inputSchema{pointer}"
