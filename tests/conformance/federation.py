"""The fixtures behind a federated source: a second tenant of the same gateway has the first one as its MCP server."""

from dataclasses import replace
from typing import Any

from tests.conformance.fixtures import Tenant
from tests.conformance.suite_gateway import SuiteGateway
from tests.support.primitives import add
from tests.support.replicas import until

SLUG = "federating"
_ATTACHING_S = 60.0

_ONE_BY_ONE = "questions of a server are asked one by one, under keys of the gateway"
_NO_TASKS = "a tool of a server runs in the caller's call: its tasks are not passed on"
NOT_FEDERATED = {
    ("input-required-result-basic-elicitation", "sep-2322-elicitation-incomplete"): _ONE_BY_ONE,
    ("input-required-result-multiple-input-requests", "sep-2322-multiple-inputs-incomplete"): _ONE_BY_ONE,
    ("input-required-result-ignore-extra-params", "sep-2322-ignore-unexpected-params"): _ONE_BY_ONE,
    ("tasks-dispatch-and-envelope", "tasks-server-directed-creation-no-hint"): _NO_TASKS,
    ("tasks-lifecycle", "sep-2663-tool-error-uses-completed-status"): _NO_TASKS,
    ("tasks-lifecycle", "sep-2663-tasks-get-status-failed"): _NO_TASKS,
    ("tasks-mrtr-input", "sep-2663-tasks-get-status-input-required"): _NO_TASKS,
    ("tasks-mrtr-input", "tasks-mrtr-tasks-update-resumes"): _NO_TASKS,
    ("tasks-mrtr-input", "tasks-mrtr-partial-fulfillment"): _NO_TASKS,
    ("tasks-required-task-error", "sep-2663-server-returns-missing-capability-when-required"): _NO_TASKS,
}
"""The checks of 2026-07-28 that do not pass, each with its reason; of 2025-11-25 there are none."""


async def federate(suite_gateway: SuiteGateway) -> SuiteGateway:
    """The same, at the URL of a tenant that has the fixtures by another MCP server only."""
    gateway = suite_gateway.replicas.a.gateway
    await gateway.create_tenant(SLUG)
    credential = {
        "name": "exam",
        "place": "bearer",
        "value": suite_gateway.tenant.key,
        "origins": [suite_gateway.origin],
    }
    await add(gateway, SLUG, "credentials", credential)
    body = {"name": "exam", "kind": "mcp", "settings": {"url": suite_gateway.url}, "credential": "exam"}
    await add(gateway, SLUG, "live-sources", body)

    async def is_attached() -> bool:
        shown = await gateway.admin.get(f"/tenants/{SLUG}/live-sources/exam")
        status: dict[str, Any] = shown.raise_for_status().json()["status"]
        return bool(status["state"] == "attached")

    await until(is_attached, seconds=_ATTACHING_S, pause=0.1)
    return replace(suite_gateway, tenant=Tenant(slug=SLUG, key=await gateway.create_key(SLUG)))
