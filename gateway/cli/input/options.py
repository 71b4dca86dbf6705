"""The options that commands share: URL, credential, tenant, data directory and output format; `--limit` and `--yes`.

All but `--limit` and `--yes` can be given before or after the command's name. The later option takes precedence; both
take precedence over the environment.
"""

from collections.abc import Callable
from pathlib import Path

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from gateway.cli.client.locations import DEFAULT_FOLDER, DEFAULT_URL, check_url, mcp_url
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.times import DurationType

_META_PREFIX = "gateway.cli."


DURATION = DurationType()
"""The type of options for durations."""
DURATION_OR_SECONDS = DurationType(plain="s")
"""The type of options that took plain seconds in earlier releases."""


def _store_option(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """Store an option's value for the running command. Only a value from the command line replaces a stored one."""
    name = str(parameter.name)
    if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
        context.meta[f"{_META_PREFIX}{name}"] = value
    else:
        context.meta.setdefault(f"{_META_PREFIX}{name}", value)


def _stored_option(name: str) -> object:
    return click.get_current_context().meta.get(f"{_META_PREFIX}{name}")


def names_of(kind: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """The completion of an option whose value names an object of this kind."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from gateway.cli.client.name_completion import complete_kind  # noqa: PLC0415  # an HTTP client

        return complete_kind(context, kind, incomplete)

    return complete


json_option = click.option(
    "--json", "as_json", is_flag=True, expose_value=False, callback=_store_option, help="Print JSON."
)
url_option = click.option(
    "--url",
    envvar="GATEWAY_URL",
    default=DEFAULT_URL,
    show_default=True,
    expose_value=False,
    callback=_store_option,
    help="The URL of the gateway.",
)
tenant_option = click.option(
    "--tenant",
    "-t",
    envvar="GATEWAY_TENANT",
    expose_value=False,
    callback=_store_option,
    shell_complete=names_of("tenant"),
    help="The tenant's slug.",
)
_profile_option = click.option(
    "--profile",
    expose_value=False,
    callback=_store_option,
    shell_complete=names_of("profile"),
    help="The profile at whose MCP URL to call, which a key of one profile requires.",
)
data_dir_option = click.option(
    "--data-dir",
    envvar="GATEWAY_DATA_DIR",
    type=click.Path(path_type=Path),
    default=DEFAULT_FOLDER,
    show_default=True,
    expose_value=False,
    callback=_store_option,
    help="The data folder of a gateway on this machine, which contains its operator key.",
)
key_option = click.option(
    "--key",
    expose_value=False,
    callback=_store_option,
    help="The credential. Prefer the environment variable: other users see options in the process list.",
)
limit_option = click.option("--limit", type=click.IntRange(min=1), help="The maximum number of items; default: all.")
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")


def mcp_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a command that is a client of a tenant, or of one of its profiles."""
    for option in (json_option, _profile_option, tenant_option, url_option, key_option):
        command = option(command)
    return command


def wants_json() -> bool:
    """True if the running command was given `--json`."""
    return bool(_stored_option("as_json"))


def chosen_url() -> str:
    """Return the gateway's URL, validated.

    Raises:
        Failure: the value is not an http or https URL.
    """
    return check_url(str(_stored_option("url")))


def chosen_mcp_url(url: str | None = None) -> str:
    """Return the MCP URL: `url` or the gateway's URL if it is one, otherwise the tenant's, and the profile's, there.

    Raises:
        Failure: the URL is not an http or https URL, or no tenant is selected.
    """
    checked = chosen_url() if url is None else check_url(url)
    if checked.endswith("/mcp"):
        return checked
    tenant = chosen("tenant")
    if not tenant:
        example = "https://HOST/t/TENANT/mcp"
        raise Failure(
            f"no tenant: give --tenant, set GATEWAY_TENANT, or give an MCP URL such as {example} (not {checked})",
            ExitCode.USAGE,
        )
    return mcp_url(checked, tenant, chosen("profile"))


def chosen(name: str) -> str | None:
    """Return the value of one of the options above; None if the option was not given and has no default."""
    value = _stored_option(name)
    return None if value is None else str(value)
