"""`gateway person`: people who signed in with an access token."""

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.item_commands import Naming, add_list, add_show, render_fields

_NOUN = "people"


@click.group("person", cls=Commands)
def person() -> None:
    """List, show, deny and allow people who signed in with an access token."""


@person.command("deny")
@click.argument("person_id", metavar="PERSON")
@with_tenant
def deny_person(context: AdminContext, person_id: str) -> None:
    """Refuse a person from now on, with every token and every key of the same subject.

    PERSON is an id, or a subject such as corp:ada, also of a person who has not signed in. Keys of other subjects that
    the person made stay valid, and are named; `gateway key revoke` ends one.
    """
    changed = context.admin.send("POST", context.tenant_path(_NOUN, person_id, "deny"))
    context.show(changed, lambda: render_fields(changed))


@person.command("allow")
@click.argument("person_id", metavar="PERSON")
@with_tenant
def allow_person(context: AdminContext, person_id: str) -> None:
    """Admit a denied person again, by id or by subject."""
    changed = context.admin.send("POST", context.tenant_path(_NOUN, person_id, "allow"))
    context.show(changed, lambda: render_fields(changed))


add_list(person, _NOUN, "List the people of a tenant.", ("subject", "id", "created_at", "active_until", "denied_at"))
add_show(person, _NOUN, "Show a person, by id or by subject.", naming=Naming(metavar="PERSON"))
