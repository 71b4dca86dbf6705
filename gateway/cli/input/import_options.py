"""Command line options of an import. `import_request` sends the import, so `--help` needs no HTTP client."""

from typing import NotRequired

import click

from gateway.cli.input.options import DurationType
from gateway.cli.input.selections import SelectionOptions
from gateway.domain.sources import Exposure
from gateway.domain.updates.source_versions import RefreshPolicy


class ImportArguments(SelectionOptions):
    """The options of an import, except the document."""

    base_url: str | None
    prefix: str | None
    expose: str | None
    output_schemas: bool | None
    refresh_policy: NotRequired[str | None]
    refresh_interval: NotRequired[int | None]
    parameters: NotRequired[tuple[str, ...]]
    timeout: NotRequired[int | None]
    wait: NotRequired[bool]
    replace: NotRequired[bool]
    credentials: tuple[str, ...]
    logins: tuple[str, ...]


class RefreshIntervalType(DurationType):
    """A duration, or `never`, in seconds; 0 for `never`."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number of seconds; any other format is a usage error."""
        return 0 if value == "never" else super().convert(value, param, ctx)


base_url_option = click.option("--base-url", help="The base URL of the API; it replaces the servers of the document.")
prefix_option = click.option("--prefix", help="The prefix of every tool name.")
expose_option = click.option(
    "--expose",
    type=click.Choice([exposure.value for exposure in Exposure]),
    help="tools: one tool for each operation; query: seven query tools for all operations; or both. Default: tools.",
)
output_schemas_option = click.option(
    "--output-schemas/--no-output-schemas",
    default=None,
    help="List output schemas, which results must match; default: no.",
)
refresh_policy_option = click.option(
    "--refresh-policy",
    type=click.Choice([policy.value for policy in RefreshPolicy]),
    help="manual: changes at the URL are proposed; additions: mere additions are activated. Default: manual.",
)
refresh_interval_option = click.option(
    "--refresh-interval",
    type=RefreshIntervalType(),
    help="The time between refreshes from the URL, such as 6h; never: no schedule. Default: never.",
)
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
timeout_option = click.option(
    "--timeout", type=DurationType(), help="The time limit of calls, such as 2m, within the operator's maximum."
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
