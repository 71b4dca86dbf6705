"""`gateway profile`: named selections of a tenant's primitives."""

import click

from gateway.cli.declared import create_all, delete_one, replace_all
from gateway.cli.desk import Desk, at_tenant
from gateway.cli.fields import JsonObject, as_object, as_objects, number_at, text_at
from gateway.cli.groups import Commands
from gateway.cli.options import confirm_option, limit_option
from gateway.cli.tables import render_pairs, render_table, thousands

_NOUN = "profiles"


@click.group(cls=Commands)
def profile() -> None:
    """List, show, declare and delete a tenant's profiles."""


@profile.command("list")
@limit_option
@at_tenant
def list_profiles(desk: Desk, limit: int | None) -> None:
    """List a tenant's profiles, and what each costs a client."""
    items = list(desk.admin.pages(desk.tenant_path(_NOUN), limit=limit))
    titles = ("name", "tools", "bytes", "tokens (estimate)", "description")
    rows = [
        (
            text_at(item, "name"),
            thousands(number_at(item, "counts", "tools")),
            thousands(number_at(item, "tools_list_bytes")),
            thousands(number_at(item, "estimated_tokens")),
            text_at(item, "description"),
        )
        for item in items
    ]
    desk.show(items, lambda: render_table(titles, rows, numbers=(1, 2, 3)))


@profile.command("show")
@click.argument("name")
@at_tenant
def show_profile(desk: Desk, name: str) -> None:
    """Show one profile with its rules."""
    found = desk.admin.get(desk.tenant_path(_NOUN, name))
    desk.show(found, lambda: _describe(found))


@profile.command("create")
@click.argument("file")
@at_tenant
def create_profile(desk: Desk, file: str) -> None:
    """Create every profile that FILE declares (JSON or YAML; - reads stdin)."""
    create_all(desk, _NOUN, file)


@profile.command("update")
@click.argument("file")
@at_tenant
def update_profile(desk: Desk, file: str) -> None:
    """Give every profile that FILE declares its new rules."""
    replace_all(desk, _NOUN, file)


@profile.command("delete")
@click.argument("name")
@confirm_option
@at_tenant
def delete_profile(desk: Desk, name: str, yes: bool) -> None:
    """Delete a profile that no key is bound to."""
    delete_one(desk, _NOUN, name, is_sure=yes)


def _describe(found: JsonObject) -> str:
    counts = [(name.replace("_", " "), text_at(found, "counts", name)) for name in as_object(found.get("counts"))]
    pairs = [
        ("name", text_at(found, "name")),
        ("id", text_at(found, "id")),
        ("description", text_at(found, "description")),
        *counts,
        ("list bytes", thousands(number_at(found, "tools_list_bytes"))),
        ("tokens (estimate)", thousands(number_at(found, "estimated_tokens"))),
        *(("include", _rule(rule)) for rule in as_objects(found.get("include"))),
        *(("exclude", _rule(rule)) for rule in as_objects(found.get("exclude"))),
    ]
    return render_pairs(pairs)


def _rule(rule: JsonObject) -> str:
    return "; ".join(f"{name} {text_at(rule, name)}" for name in rule if rule[name]) or "everything"
