"""`gateway tool`: the tools that a tenant's clients can call."""

from collections.abc import Set as AbstractSet
from typing import Any

import click

from gateway.cli.arguments import parse_arguments
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.commands.call import render_result
from gateway.cli.commands.overrides import override
from gateway.cli.commands.primitives import find_place, make_group, render_trial
from gateway.cli.exit_codes import ExitCode
from gateway.cli.input.json_fields import JsonObject, pick, text_at, to_object
from gateway.cli.kinds.commands import is_file
from gateway.cli.kinds.places import naming_of
from gateway.cli.object_names import object_argument
from gateway.cli.output.printing import echo
from gateway.kinds.primitives import TOOL

_OF_DECLARATIONS = {"--definition", "--handler", "--name", "--help"}
_RESET = "--reset"
_EPILOG = "An imported tool is changed by `gateway override update`."


class _SetOrOverride(click.Command):
    """`tool set`; with options of an override it is `override update`, as in earlier releases."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the arguments as those of one of both commands."""
        given = {arg.partition("=")[0] for arg in args}
        is_named = bool(args) and not any(map(is_file, args))
        if not given & _OF_DECLARATIONS and (given & _of_overrides() or is_named):
            if _RESET in args:
                args = ["--yes", *(arg for arg in args if arg != _RESET)]
                return override.commands["delete"].make_context(info_name, args, parent, **extra)
            return override.commands["update"].make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


def _of_overrides() -> AbstractSet[str]:
    """The options of overrides that not every command has."""
    every = {option for parameter in tool.commands["show"].params for option in parameter.opts}
    params = override.commands["update"].params
    own = {option for parameter in params for option in (*parameter.opts, *parameter.secondary_opts)}
    return {*own, _RESET} - every


def _set_command(name: str, of: click.Command, *, hidden: bool) -> click.Command:
    return _SetOrOverride(name, callback=of.callback, params=of.params, help=of.help, epilog=_EPILOG, hidden=hidden)


tool = make_group(TOOL)
tool.add_command(_set_command("put", tool.commands["set"], hidden=True))  # the name of earlier releases
tool.add_command(_set_command("set", tool.commands["set"], hidden=False))


@tool.command("try")
@object_argument(naming_of(TOOL))
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--args", "whole", metavar="JSON", help="All arguments as one JSON object.")
@with_tenant
def try_tool(context: AdminContext, name: str, arguments: tuple[str, ...], whole: str | None) -> None:
    """Call tool NAME as an admin, and show the request and the result.

    \b
    Example:
      gateway tool try find_pet petId=7
    """
    place = find_place(context, TOOL, name)
    schema = pick(context.admin.get(place), "definition", "inputSchema")
    given: JsonObject = {"arguments": parse_arguments(arguments, whole=whole, schema=schema)}
    response = context.admin.send("POST", f"{place}/try", given)
    result = to_object(response.get("result"))
    context.show(response, lambda: render_trial(response, render_result(result)))
    if text_at(result, "_meta", "gateway/approval", "state") == "pending":
        echo("gateway: this command cannot ask its user; `gateway call` with a key of the tenant can", err=True)
    if result.get("isError") is True:
        click.get_current_context().exit(ExitCode.FAILED)
