"""Alembic's environment: migrations run on the connection of `gateway.store.database`, one transaction each."""

from collections.abc import Collection, Mapping
from typing import Any

from alembic import context
from alembic.runtime.migration import MigrationContext, MigrationInfo

attributes = context.config.attributes
if "connection" not in attributes:
    raise SystemExit("Run migrations with `gateway migrate`; it holds the lock and prepares the roles.")


def note(ctx: MigrationContext, step: MigrationInfo, heads: Collection[Any], run_args: Mapping[str, Any]) -> None:
    """Record the applied revision for the caller."""
    attributes["applied"].append(step.up_revision_id)


context.configure(
    connection=attributes["connection"],
    transaction_per_migration=True,
    on_version_apply=note,
)
with context.begin_transaction():
    context.run_migrations()
