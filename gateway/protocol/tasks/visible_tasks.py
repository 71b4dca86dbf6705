"""The tasks of a connection: those of its subject and profile whose tools access rules show to its caller."""

from gateway.catalog.calls.mcp_tasks import TaskRecords
from gateway.domain.calls.mcp_tasks import McpTask, TaskOwner
from gateway.domain.primitives import Family
from gateway.errors import NotFound
from gateway.registry.hiding_rules import absence_rule
from gateway.registry.registry import Registry


def owner_of(registry: Registry) -> TaskOwner:
    """The owner of the tasks of a connection."""
    principal = registry.principal
    return TaskOwner(tenant=principal.tenant, subject=principal.subject, profile=registry.profile)


async def find_task(records: TaskRecords, registry: Registry, task_id: str) -> McpTask:
    """Return a task of a connection.

    Raises:
        NotFound: the owner has no such task, or access rules hide its tool, as from a token with fewer scopes.
    """
    task = await records.get(owner_of(registry), task_id)
    if registry.is_denied(task.tool):  # guard: task-access
        raise NotFound("there is no such task", rule=absence_rule(registry, Family.TOOL, task.tool))
    return task
