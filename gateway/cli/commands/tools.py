"""`gateway tool`: the tools that a tenant's clients can call."""

import click

from gateway.cli.arguments import parse_arguments
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.commands.call import render_result
from gateway.cli.commands.overrides import set_tool
from gateway.cli.commands.primitives import TOOLS, find_place, make_group, render_trial
from gateway.cli.exit_codes import ExitCode
from gateway.cli.input.json_fields import JsonObject, pick, text_at, to_object
from gateway.cli.output.printing import echo

tool = make_group(TOOLS)
tool.add_command(set_tool)


@tool.command("try")
@click.argument("name")
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--args", "whole", metavar="JSON", help="All arguments as one JSON object.")
@with_tenant
def try_tool(context: AdminContext, name: str, arguments: tuple[str, ...], whole: str | None) -> None:
    """Call tool NAME as an admin, and show the request and the result.

    \b
    Example:
      gateway tool try find_pet petId=7
    """
    place = find_place(context, TOOLS, name)
    schema = pick(context.admin.get(place), "definition", "inputSchema")
    given: JsonObject = {"arguments": parse_arguments(arguments, whole=whole, schema=schema)}
    response = context.admin.send("POST", f"{place}/try", given)
    result = to_object(response.get("result"))
    context.show(response, lambda: render_trial(response, render_result(result)))
    if text_at(result, "_meta", "gateway/approval", "state") == "pending":
        echo("gateway: this command cannot ask its user; `gateway call` with a key of the tenant can", err=True)
    if result.get("isError") is True:
        click.get_current_context().exit(ExitCode.FAILED)
