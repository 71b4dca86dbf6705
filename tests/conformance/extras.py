"""The fixtures that only code can be, as an operator's package would have them: GATEWAY_EXTRA_TOOLS names them."""

import anyio

from gateway.embed import Context, ExtraTool, ObjectSchema, text
from gateway.embed import Result as Answer

_NOTHING: ObjectSchema = {"type": "object", "properties": {}}


async def reconnect(context: Context) -> Answer:
    """Ends the stream of its own call; a client that resumes it finds the answer."""
    await context.end_stream()
    await anyio.sleep(0.1)
    return text("You came back.")


async def ask_what_can_be_asked(context: Context) -> Answer:
    """Asks only questions that the client declares that it can answer."""
    asked: list[str] = []
    if context.can("elicitation"):
        schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
        reply = await context.ask("Is this all right?", schema, key="consent")
        asked.append(f"elicitation: {reply.action}")
    if context.can("sampling"):
        message = {"role": "user", "content": {"type": "text", "text": "Say anything."}}
        reported = await context.sample([message], max_tokens=20, key="words")
        asked.append(f"sampling: {reported['content']['text']}")
    if context.can("roots"):
        asked.append(f"roots: {len(await context.roots(key='places'))}")
    return text(", ".join(asked) or "There is nothing that this client can be asked.")


async def compute(context: Context) -> Answer:
    """Takes as many seconds as its argument."""
    await anyio.sleep(context.arguments["seconds"])
    return text(f"{context.arguments['label']}: computed")


TOOLS = (
    ExtraTool(
        definition={
            "name": "test_reconnection",
            "description": "Ends the stream of its call before it answers.",
            "inputSchema": _NOTHING,
        },
        handler=reconnect,
        safety="safe",
        tenants=["exam"],
    ),
    ExtraTool(
        definition={
            "name": "test_input_required_result_capabilities",
            "description": "Asks only for what the client can answer.",
            "inputSchema": _NOTHING,
        },
        handler=ask_what_can_be_asked,
        safety="safe",
        tenants=["exam"],
    ),
    ExtraTool(
        definition={
            "name": "slow_compute",
            "description": "Computes for some seconds.",
            "inputSchema": {
                "type": "object",
                "properties": {"seconds": {"type": "number"}, "label": {"type": "string"}},
                "required": ["seconds", "label"],
            },
            "execution": {"taskSupport": "optional"},
        },
        handler=compute,
        safety="safe",
        tenants=["exam"],
    ),
)
