"""A client of 2026-07-28 that accepts tasks."""

from dataclasses import dataclass, field
from typing import Any

import anyio

from tests.support.gateway import RunningGateway
from tests.support.primitives import add
from tests.support.replicas import until

CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
TASKS = "io.modelcontextprotocol/tasks"
ENDED = frozenset({"completed", "failed", "cancelled"})


def accepting_tasks(**more: Any) -> dict[str, Any]:
    """Capabilities of a client that declares tasks, and whatever else is named."""
    return {"extensions": {TASKS: {}}, **more}


@dataclass(frozen=True, slots=True)
class TaskClient:
    """One key at one URL of a tenant."""

    gateway: RunningGateway
    slug: str
    key: str
    capabilities: dict[str, Any] = field(default_factory=lambda: accepting_tasks(elicitation={}))
    tools: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Tools of the tenant that are declared when they are called first."""
    declaring: anyio.Lock = field(default_factory=anyio.Lock)

    async def send(self, method: str, params: dict[str, Any], **headers: str) -> dict[str, Any]:
        """The whole response to a request."""
        async with self.declaring:
            if method == "tools/call" and (tool := self.tools.pop(params["name"], None)) is not None:
                await add(self.gateway, self.slug, "tools", tool)
        given = {**params, "_meta": {CAPABILITIES: self.capabilities}}
        named = {"mcp_name": params["taskId"]} if "taskId" in params else {}
        answer = await self.gateway.rpc(self.slug, self.key, method, given, **{**named, **headers})
        answered: dict[str, Any] = answer.json()
        return answered

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The result of a call, which may be a task."""
        answer = await self.send("tools/call", {"name": name, "arguments": arguments})
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    async def start(self, name: str, **arguments: Any) -> str:
        """The id of the task that a call became."""
        created = await self.call(name, **arguments)
        assert created["resultType"] == "task", created
        task: str = created["taskId"]
        return task

    async def get(self, task: str) -> dict[str, Any]:
        """The state of a task."""
        answer = await self.send("tasks/get", {"taskId": task})
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    async def update(self, task: str, **answers: Any) -> dict[str, Any]:
        """The whole response to answers."""
        return await self.send("tasks/update", {"taskId": task, "inputResponses": answers})

    async def cancel(self, task: str) -> dict[str, Any]:
        """The whole response to a cancellation."""
        return await self.send("tasks/cancel", {"taskId": task})

    async def wait(self, task: str, *states: str, seconds: float = 10) -> dict[str, Any]:
        """The task in one of these states, in an ended one if none is named."""
        found: dict[str, Any] = {}

        async def is_there() -> bool:
            found.update(await self.get(task))
            return found["status"] in (states or ENDED)

        await until(is_there, seconds=seconds)
        return await self.get(task)


def accept(**content: Any) -> dict[str, Any]:
    """A form that the user filled in."""
    return {"action": "accept", "content": content}
