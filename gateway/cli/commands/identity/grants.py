"""`gateway consent` and `gateway grant`: permissions of people for clients of the authorization server."""

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, confirm, with_tenant
from gateway.cli.input.json_fields import JsonObject, text_at
from gateway.cli.input.list_options import ListArguments, list_options
from gateway.cli.input.options import yes_option
from gateway.cli.output.tables import render_pairs, render_table

_CONSENTS, _GRANTS = "consents", "grants"


@click.group("consent", cls=Commands)
def consent() -> None:
    """List, show and revoke the consents of people to clients."""


@consent.command("list")
@list_options(_CONSENTS)
@with_tenant
def list_consents(context: AdminContext, wanted: ListArguments) -> None:
    """List the consents of a tenant's people."""
    names = ("id", "subject", "client_name", "client_id", "redirect_host", "resource", "created_at")
    _show_list(context, _CONSENTS, wanted, names)


@consent.command("show")
@click.argument("consent_id", metavar="ID")
@with_tenant
def show_consent(context: AdminContext, consent_id: str) -> None:
    """Show a consent."""
    found = context.admin.get(context.tenant_path(_CONSENTS, consent_id))
    context.show(found, lambda: _describe(found))


@consent.command("revoke")
@click.argument("consent_id", metavar="ID")
@yes_option
@with_tenant
def revoke_consent(context: AdminContext, consent_id: str, yes: bool) -> None:
    """Delete a consent, and revoke the grants of its client; the person is asked again."""
    confirm(f"Revoke consent {consent_id}?", is_sure=yes)
    context.admin.send("DELETE", context.tenant_path(_CONSENTS, consent_id))
    context.show({"revoked": consent_id}, lambda: f"revoked {consent_id}")


@click.group("grant", cls=Commands)
def grant() -> None:
    """List, show and revoke the grants of people to clients."""


@grant.command("list")
@list_options(_GRANTS)
@with_tenant
def list_grants(context: AdminContext, wanted: ListArguments) -> None:
    """List the grants under which tokens were issued."""
    _show_list(context, _GRANTS, wanted, ("id", "subject", "client_name", "profile", "state", "used_at", "ends_at"))


@grant.command("show")
@click.argument("grant_id", metavar="ID")
@with_tenant
def show_grant(context: AdminContext, grant_id: str) -> None:
    """Show a grant."""
    found = context.admin.get(context.tenant_path(_GRANTS, grant_id))
    context.show(found, lambda: _describe(found))


@grant.command("revoke")
@click.argument("grant_id", metavar="ID")
@with_tenant
def revoke_grant(context: AdminContext, grant_id: str) -> None:
    """Refuse the tokens of a grant everywhere within five seconds; the consent stays."""
    revoked = context.admin.send("POST", context.tenant_path(_GRANTS, grant_id, "revoke"))
    context.show(revoked, lambda: f"revoked {grant_id}")


def _show_list(context: AdminContext, noun: str, wanted: ListArguments, names: tuple[str, ...]) -> None:
    items = list(context.admin.pages(context.tenant_path(noun), limit=wanted.limit, query=wanted.query))
    context.show(items, lambda: render_table(names, [[text_at(item, name) for name in names] for item in items]))


def _describe(found: JsonObject) -> str:
    return render_pairs([(name.replace("_", " "), text_at(found, name)) for name in found])
