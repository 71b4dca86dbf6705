"""Errors of type checkers about wrong definitions: a line that ends with `# expect` has an error, all others none."""

from typing import Any

from gateway.embed import (
    AnySchema,
    Context,
    ExtraTool,
    Gateway,
    ObjectSchema,
    Result,
    Schema,
    ToolShape,
    text,
    validate_tool_definition,
)

gateway = Gateway()


def handler(context: Context) -> Result:
    return text(context.tenant)


good: ObjectSchema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
no_properties: ObjectSchema = {"type": "object"}  # expect
an_array: ObjectSchema = {"type": "array", "properties": {}}  # expect
no_type: ObjectSchema = {"properties": {}}  # expect
required_is_a_number: ObjectSchema = {"type": "object", "properties": {}, "required": 7}  # expect

gateway.register_tool("good", {"description": "Fine.", "inputSchema": good}, handler)
gateway.register_tool("wrong_1", {"inputSchema": good}, handler)  # expect
gateway.register_tool("wrong_2", {"description": "No schema."}, handler)  # expect
gateway.register_tool("wrong_3", {"description": "x", "inputSchema": {"type": "object"}}, handler)  # expect
gateway.register_tool("wrong_4", {"description": "x", "inputSchema": good, "color": "red"}, handler)  # expect
gateway.register_tool("wrong_5", {"description": 7, "inputSchema": good}, handler)  # expect
gateway.register_prompt("wrong_6", {"arguments": [{"required": True}]}, lambda _: "x")  # expect
gateway.register_resource("docs://wrong", {"size": 7}, lambda _: "x")  # expect
ExtraTool(definition={"description": "x", "inputSchema": an_array}, handler=handler)
ExtraTool(definition={"description": "x"}, handler=handler)  # expect

SIZE: Schema = {"type": ["integer", "null"], "minimum": 0, "x-mcp-header": "Size"}
TREE: AnySchema = {
    "type": "object",
    "properties": {"size": SIZE, "inner": good, "any": {}, "none": False, "all": {"items": {"$ref": "#"}}},
    "$defs": {"name": {"type": "string", "pattern": "^a", "enum": ["a", "ab"]}},
    "if": {"required": ["size"]},
    "then": {"not": {"properties": {"none": True}}},
}
nested: ObjectSchema = {"type": "object", "properties": {"tree": TREE, "list": {"type": "array", "items": SIZE}}}
type_is_a_number: ObjectSchema = {"type": "object", "properties": {"a": {"type": 3}}}  # expect
type_is_unknown: ObjectSchema = {"type": "object", "properties": {"a": {"type": "text"}}}  # expect
keyword_is_unknown: ObjectSchema = {"type": "object", "properties": {"a": {"minimun": 1}}}  # expect
a_list_of_names: ObjectSchema = {"type": "object", "properties": {"a": ["string"]}}  # expect
deep: ObjectSchema = {"type": "object", "properties": {"a": {"items": {"anyOf": [{"type": 3}]}}}}  # expect
defined: ObjectSchema = {"type": "object", "properties": {}, "$defs": {"a": {"maxLength": "7"}}}  # expect

shaped: ToolShape = {"description": "x", "inputSchema": nested, "outputSchema": {"type": "array", "items": SIZE}}
gateway.register_tool("nested", shaped, handler)
gateway.register_tool(
    "wrong_7",
    {"description": "x", "inputSchema": {"type": "object", "properties": {"a": {"type": 3}}}},  # expect
    handler,
)
gateway.register_tool("wrong_8", {"description": "x", "inputSchema": good, "outputSchema": ["x"]}, handler)  # expect
ExtraTool(definition={"description": "x", "inputSchema": good, "outputSchema": {"type": 3}}, handler=handler)  # expect

sent: dict[str, Any] = {
    "name": "own",
    "description": "x",
    "inputSchema": {"type": "object", "properties": {}, "x-own": 1},
}
gateway.register_tool("own", validate_tool_definition(sent), handler)
