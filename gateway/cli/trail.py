"""`gateway audit`: what was done in a tenant, by whom, with what outcome."""

import click

from gateway.cli.desk import Desk, at_tenant
from gateway.cli.fields import text_at
from gateway.cli.tables import render_table

_COLUMNS = ("at", "kind", "principal", "action", "target", "outcome", "correlation_id")


@click.group()
def audit() -> None:
    """Read a tenant's audit trail."""


@audit.command("list")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@at_tenant
def list_entries(desk: Desk, limit: int) -> None:
    """List audit entries, the newest first."""
    items = list(desk.admin.pages(desk.tenant_path("audit"), limit=limit))
    rows = [[text_at(item, name) for name in _COLUMNS] for item in items]
    desk.show(items, lambda: render_table([name.replace("_", " ") for name in _COLUMNS], rows))
