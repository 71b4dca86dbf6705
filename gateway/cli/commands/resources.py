"""`gateway resource` and `gateway resource-template`: the resources and templates that a tenant's clients can read."""

from urllib.parse import quote

import click

from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.commands.primitives import make_group, render_trial
from gateway.cli.commands.updates.resource_watch import watch_resource
from gateway.cli.input.json_fields import JsonObject, pick, text_at, to_objects
from gateway.cli.kinds.places import naming_of
from gateway.cli.object_names import object_argument
from gateway.cli.output.tables import thousands
from gateway.kinds.primitives import RESOURCE, TEMPLATE

resource = make_group(RESOURCE)
template = make_group(TEMPLATE)


def _try(context: AdminContext, uri: str) -> None:
    response = context.admin.send("POST", f"{context.tenant_path('resources', 'try')}?uri={quote(uri, safe='')}")
    context.show(response, lambda: render_trial(response, _render(response)))


@resource.command("try")
@object_argument(naming_of(RESOURCE), "uri")
@with_tenant
def try_resource(context: AdminContext, uri: str) -> None:
    """Read the resource at URI as an admin, and show its contents.

    \b
    Example:
      gateway resource try notes://today
    """
    _try(context, uri)


@template.command("try")
@click.argument("uri")
@with_tenant
def try_template(context: AdminContext, uri: str) -> None:
    """Read the URI of a resource template as an admin, and show its contents.

    \b
    Example:
      gateway resource-template try notes://days/monday
    """
    _try(context, uri)


@resource.command("touch")
@object_argument(naming_of(RESOURCE), "uri")
@with_tenant
def report_update(context: AdminContext, uri: str) -> None:
    """Report that the contents at URI have changed; clients that are subscribed to it are notified.

    \b
    Example:
      gateway resource touch notes://today
    """
    context.admin.send("POST", context.tenant_path("resources", "updated"), {"uri": uri})
    context.show({"updated": uri}, lambda: f"reported that {uri} has changed")


resource.add_command(watch_resource)


def _render(response: JsonObject) -> str:
    contents = to_objects(pick(response, "result", "contents"))
    return "\n".join(text_at(one, "text") or _describe(one) for one in contents)


def _describe(one: JsonObject) -> str:
    size = len(text_at(one, "blob")) * 3 // 4
    return f"[{text_at(one, 'mimeType')}, about {thousands(size)} bytes; --json shows them]"
