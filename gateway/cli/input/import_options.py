"""Command line options of an import. `import_request` sends the import, so `--help` needs no HTTP client."""

from collections.abc import Callable, Mapping
from typing import Any, NotRequired

import click

from gateway.cli.input.json_fields import JsonObject
from gateway.cli.input.selections import SelectionOptions
from gateway.cli.kinds.options import Command, add_options, fields_of, options_of
from gateway.kinds.members import settable
from gateway.kinds.sources import SOURCE


class ImportArguments(SelectionOptions):
    """The options of an import, except the document."""

    member_base_url: str | None
    member_prefix: str | None
    member_expose: str | None
    member_output_schemas: bool | None
    member_refresh_policy: NotRequired[str | None]
    member_refresh_interval: NotRequired[int | str | None]
    member_timeout: NotRequired[int | str | None]
    parameters: NotRequired[tuple[str, ...]]
    wait: NotRequired[bool]
    replace: NotRequired[bool]
    credentials: tuple[str, ...]
    logins: tuple[str, ...]


_ALL = options_of(SOURCE, is_new=True)
REPLACED = tuple(one.name for one in settable(SOURCE.of) if one.name != "url")
"""The options that a PUT resets if they are not sent."""


def _of(*names: str) -> Callable[[Command], Command]:
    """Add the options of these members of sources to a command."""
    chosen = [one for one in _ALL if one.member.name in names]
    return lambda command: add_options(command, chosen)


def source_options(*, is_new: bool) -> Callable[[Command], Command]:
    """Add the declared options of sources to a command."""
    chosen = options_of(SOURCE, is_new=is_new)
    return lambda command: add_options(command, chosen)


def declared_fields(options: Mapping[str, Any]) -> JsonObject:
    """The fields of a request that the declared options describe, of a command that has some of them."""
    return fields_of([one for one in _ALL if one.parameter in options], options)


base_url_option, prefix_option = _of("base_url"), _of("prefix")
expose_option, output_schemas_option = _of("expose"), _of("output_schemas")
entry_option = click.option("--entry", metavar="PATH", help="The root document of an archive, if several are possible.")
credential_option = click.option(
    "--credential",
    "credentials",
    multiple=True,
    metavar="SCHEME=VALUE",
    help="The key or token of a security scheme; VALUE may be @FILE, env:NAME or credential:NAME.",
)
parameter_option = click.option(
    "--parameter",
    "parameters",
    multiple=True,
    metavar="LOCATION:NAME=CREDENTIAL",
    help="A header, query parameter, cookie or path placeholder that the credential of this name fills, such as "
    "header:X-API-Key=key with --credential key=VALUE.",
)
wait_option = click.option(
    "--wait", is_flag=True, help="If the rate limit refuses the import, wait and send it again, for at most 5 minutes."
)
login_option = click.option(
    "--login",
    "logins",
    multiple=True,
    metavar="SCHEME=USER:PASSWORD",
    help="The user name and password for a security scheme SCHEME with HTTP Basic, or the client id and secret for one"
    " with client credentials; repeatable.",
)
