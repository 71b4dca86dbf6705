"""What type checkers must say of wrong definitions: a line that ends with `# expect` has an error, all others none."""

from gateway.embed import Context, ExtraTool, Gateway, ObjectSchema, Result, text

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
