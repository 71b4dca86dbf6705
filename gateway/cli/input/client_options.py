"""Options that describe the simulated client of a call: a key, or a person with a subject, groups and scopes."""

from collections.abc import Callable
from typing import Any, TypedDict, TypeVar

import click

from gateway.cli.client.admin_context import AdminContext
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject
from gateway.cli.input.options import names_of
from gateway.cli.kinds.places import naming_of
from gateway.kinds.identity import KEY

_Command = TypeVar("_Command", bound=Callable[..., Any])


class ClientOptions(TypedDict):
    """The simulated client, as options."""

    as_key: str | None
    subject: str | None
    groups: tuple[str, ...]
    no_groups: bool
    scopes: tuple[str, ...]


_OPTIONS = (
    click.option(
        "--as-key",
        metavar="KEY",
        shell_complete=names_of("key"),
        help="Simulate a client with the key of this id or name.",
    ),
    click.option("--as-subject", "subject", metavar="SUBJECT", help="Simulate this person, such as corp:ada."),
    click.option(
        "--as-group",
        "groups",
        metavar="ISSUER:GROUP",
        multiple=True,
        help="A group of the simulated person; may be repeated. Without any, the groups are not known.",
    ),
    click.option("--as-no-group", "no_groups", is_flag=True, help="The simulated person is in no group."),
    click.option(
        "--as-scope",
        "scopes",
        metavar="ISSUER:SCOPE",
        multiple=True,
        help="A scope of the simulated person's access token; may be repeated.",
    ),
)


def client_options(command: _Command) -> _Command:
    """Add the options of a simulated client to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def describe_client(context: AdminContext, options: ClientOptions) -> JsonObject:
    """Return the members of the client in a request.

    Raises:
        Failure: the options exclude each other, or no key has the name.
    """
    groups = list(options["groups"]) if options["groups"] or options["no_groups"] else None
    scopes = list(options["scopes"])
    is_person = options["subject"] is not None or groups is not None or scopes
    if is_person and options["as_key"] is not None:
        raise Failure("--as-key excludes the options of a person", ExitCode.USAGE)
    if options["groups"] and options["no_groups"]:
        raise Failure("--as-no-group excludes --as-group", ExitCode.USAGE)
    key = None if options["as_key"] is None else naming_of(KEY).find(context, options["as_key"])
    return {"key": key, "subject": options["subject"], "groups": groups, "scopes": scopes}
