"""The first generation of the SDK for Python walks a tenant and prints what it saw; runs in an environment of its own.

Its modules have the names of the SDK that the gateway uses, whose types would be wrong here.
"""

import asyncio
import importlib
import json
import os
import sys
import urllib.request
from typing import Any

WATCHED = "test://watched-resource"


async def walk(url: str) -> dict[str, Any]:
    """List, call, read, get a prompt, complete, answer a question, subscribe and be notified."""
    mcp: Any = importlib.import_module("mcp")
    types: Any = importlib.import_module("mcp.types")
    transport: Any = importlib.import_module("mcp.client.streamable_http")
    notified: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    steps: list[float] = []

    async def answer(*_: Any) -> Any:
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def receive(message: Any) -> None:
        reported: Any = getattr(message, "root", None)
        if isinstance(reported, types.ResourceUpdatedNotification):
            notified.set_result(str(reported.params.uri))

    async def count(progress: float, _: float | None, __: str | None) -> None:
        steps.append(progress)

    headers = {"authorization": os.environ["EXAM_AUTHORIZATION"]}
    async with (
        transport.create_mcp_http_client(headers=headers) as http,
        transport.streamable_http_client(url, http_client=http) as (reading, writing, _),
        mcp.ClientSession(reading, writing, elicitation_callback=answer, message_handler=receive) as session,
    ):
        seen: dict[str, Any] = {"era": (await session.initialize()).protocolVersion}
        seen["tools"] = [tool.name for tool in (await session.list_tools()).tools]
        seen["called"] = (await session.call_tool("test_simple_text", {})).content[0].text
        await session.call_tool("test_tool_with_progress", {}, progress_callback=count)
        seen["progress"] = steps
        seen["read"] = (await session.read_resource("test://static-text")).contents[0].text
        got = await session.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
        seen["prompt"] = got.messages[0].content.text
        ref = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
        seen["completed"] = (await session.complete(ref, {"name": "arg1", "value": "par"})).completion.values
        seen["elicited"] = (await session.call_tool("test_input_required_result_elicitation", {})).content[0].text
        await session.subscribe_resource(WATCHED)
        await asyncio.to_thread(_notify)
        seen["told"] = await notified
    return seen


def _notify() -> None:
    """Change of a resource by an administrator."""
    headers = {"authorization": os.environ["EXAM_OPERATOR"], "content-type": "application/json"}
    body = json.dumps({"uri": WATCHED}).encode()
    urllib.request.urlopen(urllib.request.Request(os.environ["EXAM_UPDATED"], body, headers)).close()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(walk(sys.argv[1]))))
