"""`gateway resource` and `gateway resource-template`: what a tenant's clients can read."""

from urllib.parse import quote

import click

from gateway.cli.client.admin_context import Desk, at_tenant
from gateway.cli.commands.primitives import RESOURCES, TEMPLATES, make_group, render_trial
from gateway.cli.commands.resource_watch import watch_resource
from gateway.cli.input.json_fields import JsonObject, as_objects, pick, text_at
from gateway.cli.output.tables import drop_controls, thousands

resource = make_group(RESOURCES)
template = make_group(TEMPLATES)


def _try(desk: Desk, uri: str) -> None:
    answer = desk.admin.send("POST", f"{desk.tenant_path('resources', 'try')}?uri={quote(uri, safe='')}")
    desk.show(answer, lambda: render_trial(answer, _render(answer)))


@resource.command("try")
@click.argument("uri")
@at_tenant
def try_resource(desk: Desk, uri: str) -> None:
    """Read the resource at URI as an admin, and show its contents."""
    _try(desk, uri)


@template.command("try")
@click.argument("uri")
@at_tenant
def try_template(desk: Desk, uri: str) -> None:
    """Read the URI of a resource template as an admin, and show its contents."""
    _try(desk, uri)


@resource.command("touch")
@click.argument("uri")
@at_tenant
def report_update(desk: Desk, uri: str) -> None:
    """Say that the contents at URI have changed, so that clients that follow it are told."""
    desk.admin.send("POST", desk.tenant_path("resources", "updated"), {"uri": uri})
    desk.show({"updated": uri}, lambda: f"told that {uri} has changed")


resource.add_command(watch_resource)


def _render(answer: JsonObject) -> str:
    contents = as_objects(pick(answer, "result", "contents"))
    return drop_controls("\n".join(text_at(one, "text") or _describe(one) for one in contents))


def _describe(one: JsonObject) -> str:
    size = len(text_at(one, "blob")) * 3 // 4
    return f"[{text_at(one, 'mimeType')}, about {thousands(size)} bytes; --json shows them]"
