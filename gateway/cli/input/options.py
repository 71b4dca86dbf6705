"""The options that commands share: URL, credential, tenant, data directory and output format; `--limit` and `--yes`.

All but `--limit` and `--yes` can be given before or after the command's name. The later option takes precedence; both
take precedence over the environment.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from gateway.cli.client.locations import DEFAULT_FOLDER, DEFAULT_URL, check_url, mcp_url
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.times import DurationType

if TYPE_CHECKING:
    from gateway.cli.contexts.stored import StoredContext

_META_PREFIX = "gateway.cli."
_SOURCE = ".source"
"""The suffix of the place from which an option has its value; none for a default."""


DURATION = DurationType()
"""The type of options for durations."""
DURATION_OR_SECONDS = DurationType(plain="s")
"""The type of options that took plain seconds in earlier releases."""


def _store_option(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """Store an option's value for the running command. Only a value from the command line replaces a stored one."""
    name = str(parameter.name)
    source = context.get_parameter_source(name)
    if source is ParameterSource.COMMANDLINE:
        context.meta[f"{_META_PREFIX}{name}"] = value
        context.meta[f"{_META_PREFIX}{name}{_SOURCE}"] = source
        return
    context.meta.setdefault(f"{_META_PREFIX}{name}", value)
    if source is ParameterSource.ENVIRONMENT:
        context.meta.setdefault(f"{_META_PREFIX}{name}{_SOURCE}", source)


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


def _complete_contexts(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from gateway.cli.contexts.commands import complete_contexts  # noqa: PLC0415  # only for the shell

    return complete_contexts(context, parameter, incomplete)


context_option = click.option(
    "--context",
    "context_name",
    envvar="GATEWAY_CONTEXT",
    expose_value=False,
    callback=_store_option,
    shell_complete=_complete_contexts,
    help="A stored context, which has a URL, a tenant and a key; default: the current one.",
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
    for option in (json_option, _profile_option, tenant_option, context_option, url_option, key_option):
        command = option(command)
    return command


def wants_json() -> bool:
    """True if the running command was given `--json`."""
    return bool(_stored_option("as_json"))


def chosen_url() -> str:
    """Return the gateway's URL, validated.

    Raises:
        Failure: the value is not an http or https URL, or the context does not exist.
    """
    found = chosen_context()
    return check_url(str(_stored_option("url")) if found is None else found.url)


def chosen_context() -> "StoredContext | None":
    """Return the stored context that applies: that of `--context`, or else one if no other URL is given.

    Raises:
        Failure: there is no such context, or the options contradict each other.
    """
    url_source, name = _stored_option(f"url{_SOURCE}"), _stored_option("context_name")
    if is_context_option() and url_source is ParameterSource.COMMANDLINE:
        raise Failure("give --context or --url, not both", ExitCode.USAGE)
    if url_source is not None and not is_context_option():
        return None
    from gateway.cli.contexts.stored import find_context, read_contexts  # noqa: PLC0415  # help reads no context

    if name:
        return find_context(str(name))
    contexts, current = read_contexts()
    return None if current is None else contexts[current]


def is_context_option() -> bool:
    """True if the context is given as an option, which precedes the environment."""
    return _stored_option(f"context_name{_SOURCE}") is ParameterSource.COMMANDLINE


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
    """Return the value of one of the options above; None if it was not given, has no default and no context has it."""
    given = given_option(name)
    if name != "tenant" or _stored_option(f"tenant{_SOURCE}") is ParameterSource.COMMANDLINE:
        return given
    if given is not None and not is_context_option():
        return given
    found = chosen_context()
    return given if found is None or found.tenant is None else found.tenant


def given_option(name: str) -> str | None:
    """Return the value of one of the options above, without any context."""
    value = _stored_option(name)
    return None if value is None else str(value)
