"""`gateway tool`: what a tenant's clients can call."""

import json

import click

from gateway.cli.desk import Desk, at_tenant
from gateway.cli.fields import JsonObject, text_at
from gateway.cli.options import limit_option
from gateway.cli.tables import render_pairs, render_table, shorten

_DESCRIPTION_WIDTH = 60


@click.group()
def tool() -> None:
    """List and show the tools a tenant has."""


@tool.command("list")
@limit_option
@at_tenant
def list_tools(desk: Desk, limit: int | None) -> None:
    """List the tools a tenant has, wherever they come from."""
    items = list(desk.admin.pages(desk.tenant_path("tools"), limit=limit))
    rows = [(text_at(item, "name"), text_at(item, "safety"), origin_of(item), _summary(item)) for item in items]
    desk.show(items, lambda: render_table(("name", "safety", "from", "description"), rows))


@tool.command("show")
@click.argument("name")
@at_tenant
def show_tool(desk: Desk, name: str) -> None:
    """Show one tool with its definition, as clients see it."""
    found = desk.admin.get(desk.tenant_path("tools", name))
    desk.show(found, lambda: _describe(found))


def origin_of(item: JsonObject) -> str:
    """Where it comes from, with the source's name where it has one."""
    source = text_at(item, "source")
    return ":".join(part for part in (text_at(item, "origin"), source) if part)


def _summary(item: JsonObject) -> str:
    return shorten(text_at(item, "definition", "description"), _DESCRIPTION_WIDTH)


def _describe(found: JsonObject) -> str:
    pairs = [
        ("name", text_at(found, "name")),
        ("from", origin_of(found)),
        ("operation", text_at(found, "operation")),
        ("safety", text_at(found, "safety")),
        ("because", text_at(found, "safety_reasons")),
    ]
    definition = json.dumps(found.get("definition"), indent=2, ensure_ascii=False)
    return f"{render_pairs(pairs)}\n\n{definition}"
