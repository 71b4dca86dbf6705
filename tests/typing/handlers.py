"""Errors of type checkers about wrong handlers: a line that ends with `# expect` has an error, all others none."""

from collections.abc import Mapping
from typing import Any

from gateway.embed import Completing, Contents, Context, Gateway, Messages, Result, ToolShape, success, text

gateway = Gateway()

ECHO: ToolShape = {
    "description": "Says it again.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
}


async def good_tool(context: Context) -> Result:
    return text(str(context.arguments["text"]))


def good_plain_tool(context: Context) -> str:
    return context.tenant


def good_mapping_tool(context: Context) -> Mapping[str, object]:
    return {"tenant": context.tenant}


def no_context() -> Result:
    return success({})


def two_parameters(context: Context, more: int) -> Result:
    return success({"more": more, "tenant": context.tenant})


def of_a_number(context: int) -> Result:
    return success(context)


async def gives_a_number(context: Context) -> int:
    return len(context.tenant)


def gives_nothing(context: Context) -> None:
    print(context.tenant)


gateway.register_tool("echo", ECHO, good_tool)
gateway.register_tool("plain", ECHO, good_plain_tool)
gateway.register_tool("mapping", ECHO, good_mapping_tool, safety="safe", tenants=["acme"])
gateway.register_tool("wrong_1", ECHO, no_context)  # expect
gateway.register_tool("wrong_2", ECHO, two_parameters)  # expect
gateway.register_tool("wrong_3", ECHO, of_a_number)  # expect
gateway.register_tool("wrong_4", ECHO, gives_a_number)  # expect
gateway.register_tool("wrong_5", ECHO, gives_nothing)  # expect
gateway.register_tool("wrong_6", ECHO, "not a function")  # expect
gateway.register_tool("wrong_7", ECHO, good_tool, tenants=[7])  # expect


def good_resource(context: Context) -> str:
    return context.uri or ""


async def good_contents(context: Context) -> Contents:
    return Contents(contents=({"uri": context.uri or "", "mimeType": "text/plain", "text": "x"},))


def gives_a_result(context: Context) -> Result:
    return text(context.tenant)


def good_mapping_resource(context: Context) -> dict[str, Any]:
    return {"uri": context.uri, "mimeType": "text/plain", "text": "x"}


gateway.register_resource("docs://readme", {"name": "readme", "mimeType": "text/plain"}, good_resource)
gateway.register_resource("docs://mapping", {"name": "mapping"}, good_mapping_resource)
gateway.register_resource("docs://other", {"name": "other"}, good_contents)
gateway.register_resource("docs://wrong", {"name": "wrong"}, gives_a_result)  # expect
gateway.register_resource("docs://wrong", {"name": "wrong"}, no_context)  # expect


def good_prompt(context: Context) -> Messages:
    return Messages(messages=({"role": "user", "content": {"type": "text", "text": context.arguments["code"]}},))


def good_list_prompt(context: Context) -> list[dict[str, object]]:
    return [{"role": "user", "content": {"type": "text", "text": context.tenant}}]


async def good_mapping_prompt(context: Context) -> Mapping[str, object]:
    return {"messages": good_list_prompt(context), "description": "Says who asks."}


def good_completion(completing: Completing) -> list[str]:
    return [completing.value + "x"]


def gives_a_text(completing: Completing) -> int:
    return len(completing.value)


gateway.register_prompt("review", {"arguments": [{"name": "code", "required": True}]}, good_prompt)
gateway.register_prompt("complete", {}, good_prompt, complete=good_completion)
gateway.register_prompt("list", {}, good_list_prompt)
gateway.register_prompt("mapping", {}, good_mapping_prompt)
gateway.register_prompt("wrong_1", {}, gives_a_result)  # expect
gateway.register_prompt("wrong_2", {}, good_prompt, complete=gives_a_text)  # expect


@gateway.tool("decorated", ECHO)
async def decorated(context: Context) -> Result:
    return success({"tenant": context.tenant})


@gateway.tool("wrong_8", ECHO)  # expect
async def decorated_wrongly(context: Context) -> float:
    return float(len(context.tenant))
