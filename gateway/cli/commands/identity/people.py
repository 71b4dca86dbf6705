"""`gateway person`: people who signed in with an access token."""

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.input.json_fields import JsonObject, text_at
from gateway.cli.input.list_options import ListArguments, list_options
from gateway.cli.output.tables import render_pairs, render_table

_NOUN = "people"


@click.group("person", cls=Commands)
def person() -> None:
    """List, show, deny and allow people who signed in with an access token."""


@person.command("list")
@list_options(_NOUN)
@with_tenant
def list_people(context: AdminContext, wanted: ListArguments) -> None:
    """List the people of a tenant."""
    items = list(context.admin.pages(context.tenant_path(_NOUN), limit=wanted.limit, query=wanted.query))
    names = ("subject", "id", "created_at", "active_until", "denied_at")
    context.show(items, lambda: render_table(names, [[text_at(item, name) for name in names] for item in items]))


@person.command("show")
@click.argument("person_id", metavar="PERSON")
@with_tenant
def show_person(context: AdminContext, person_id: str) -> None:
    """Show a person."""
    found = context.admin.get(context.tenant_path(_NOUN, person_id))
    context.show(found, lambda: _describe(found))


@person.command("deny")
@click.argument("person_id", metavar="PERSON")
@with_tenant
def deny_person(context: AdminContext, person_id: str) -> None:
    """Refuse a person from now on, with every token and every key of the same subject."""
    changed = context.admin.send("POST", context.tenant_path(_NOUN, person_id, "deny"))
    context.show(changed, lambda: _describe(changed))


@person.command("allow")
@click.argument("person_id", metavar="PERSON")
@with_tenant
def allow_person(context: AdminContext, person_id: str) -> None:
    """Admit a denied person again."""
    changed = context.admin.send("POST", context.tenant_path(_NOUN, person_id, "allow"))
    context.show(changed, lambda: _describe(changed))


def _describe(found: JsonObject) -> str:
    return render_pairs([(name.replace("_", " "), text_at(found, name)) for name in found])
