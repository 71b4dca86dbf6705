"""The command `gateway stdio` and its options. The server is imported when the command runs, for a fast `--help`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

import click
from click.core import ParameterSource

from gateway.cli.click_group import paused_collection
from gateway.cli.deferred_imports import defer_imports
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.import_options import credential_option, expose_option, login_option, output_schemas_option
from gateway.cli.input.options import chosen, key_option, tenant_option
from gateway.cli.input.selections import selection_options
from gateway.cli.stdio.options import StdioOptions
from gateway.domain.tenancy.policy import Decision

if TYPE_CHECKING:
    from gateway.protocol.stdio.streams import ClaimedStreams

_DECISION = click.Choice([decision.value for decision in Decision if decision is not Decision.APPROVE])
"""The possible decisions of one process. It stores nothing, so another person cannot approve a call."""
_EPILOG = """\b
Examples:
  gateway stdio --spec openapi.yaml
  gateway stdio --spec crm.yaml --prefix crm --spec shop.yaml --prefix shop --moderate confirm
  GATEWAY_KEY=… gateway stdio --url https://gateway.example.com/t/acme/mcp
"""


@click.command("stdio", epilog=_EPILOG)
@click.option(
    "--spec", "specs", multiple=True, metavar="SPEC", help="The path or URL of a document to serve; may be repeated."
)
@click.option("--url", metavar="URL", help="The MCP URL of a tenant, or the URL of a gateway with --tenant.")
@click.option("--client-lines", is_flag=True, help="Print configuration for known clients, and exit.")
@click.option("--prefix", "prefixes", multiple=True, help="The prefix of tool names; with several SPECs, one each.")
@click.option("--base-url", "base_urls", multiple=True, help="The base URL of the API; with several SPECs, one each.")
@expose_option
@selection_options
@output_schemas_option
@credential_option
@login_option
@click.option(
    "--safe", type=_DECISION, default="allow", show_default=True, help="The decision for calls that only read."
)
@click.option(
    "--moderate", type=_DECISION, default="allow", show_default=True, help="The decision for calls that change data."
)
@click.option(
    "--dangerous", type=_DECISION, default="confirm", show_default=True, help="The decision for calls that delete data."
)
@key_option
@tenant_option
def stdio(specs: tuple[str, ...], url: str | None, client_lines: bool, **options: Unpack[StdioOptions]) -> None:
    """Serve MCP on standard input and output, one JSON-RPC message per line, until standard input ends.

    With --spec, serves documents as tools from this process, without a database or files. With --url, forwards messages
    to a tenant's URL and back; the key is --key or GATEWAY_KEY. Logs go to standard error.
    """
    if specs and url is not None:
        raise Failure("give --spec or --url, not both", ExitCode.USAGE)
    if not specs and url is None and not chosen("tenant"):
        raise Failure("nothing to serve: give --spec SPEC, or --url with the MCP URL of a tenant", ExitCode.USAGE)
    if not specs:
        _refuse_given(options)
    if client_lines:
        from gateway.cli.stdio.configuration import print_client_lines  # noqa: PLC0415  # an HTTP client

        print_client_lines(specs, url)
    elif specs:
        serve_specs(specs, options)
    else:
        claimed = _claim()
        from gateway.cli.stdio.bridge import serve_bridge  # noqa: PLC0415  # an HTTP client

        serve_bridge(claimed, url)


def serve_specs(specs: Sequence[str], options: StdioOptions) -> None:
    """Serve documents on the standard streams until the client ends.

    Raises:
        Failure: an option, a setting or a document cannot be used; nothing was served.
    """
    claimed = _claim()
    with paused_collection():
        defer_imports(("mcp", "mcp.server", "structlog"))
        from gateway.cli.stdio.documents import serve_documents  # noqa: PLC0415  # the compiler and its workers
    serve_documents(claimed, specs, options)


@click.command("provide")
@click.option("--url", metavar="URL", help="The URL of a tenant, or the URL of a gateway with --tenant.")
@key_option
@tenant_option
def provide(url: str | None) -> None:
    """Connect a program that offers tools: each line of standard input is one message of the provider protocol.

    Received messages are the lines of standard output. The key, --key or GATEWAY_KEY, needs the scope provide. At the
    end of standard input the connection is closed. docs/providers.md has the messages, and the meaning of a close code.

    \b
    Example:
      gateway --tenant acme provide
    """
    claimed = _claim()
    from gateway.cli.stdio.provider import serve_provider  # noqa: PLC0415  # a WebSocket client

    serve_provider(claimed, url)


def _claim() -> "ClaimedStreams":
    """Claim the standard streams before any import that may write to them."""
    from gateway.cli.stdio.running import claim  # noqa: PLC0415  # asyncio

    return claim()


def _refuse_given(options: StdioOptions) -> None:
    """Refuse the options of documents beside a URL, where the tenant's own policy and sources apply."""
    context = click.get_current_context()
    given = [name for name in options if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if given:
        named = next(parameter.opts[0] for parameter in context.command.params if parameter.name == given[0])
        raise Failure(f"{named} is only for --spec; with --url the settings of the tenant apply", ExitCode.USAGE)
