"""The command `gateway`: its subcommands, its help and its exit."""

import io
import logging
import os
import sys
from typing import NoReturn

import click

from gateway.cli.click_group import LazyGroup
from gateway.cli.deferred_imports import omit_unused
from gateway.cli.exit_codes import ExitCode, describe_exits
from gateway.cli.failures import Failure, failure_from_any
from gateway.cli.input.options import context_option, json_option, key_option, tenant_option, url_option
from gateway.cli.kinds.groups import GROUPS
from gateway.cli.output.printing import echo
from gateway.telemetry.distribution import VERSION
from gateway.telemetry.standard_streams import open_closed_descriptors

_COMMANDS = {
    "try": ("gateway.cli.commands.servers:try_spec", "Serve a document as tools, without any setup, until Ctrl-C."),
    "serve": ("gateway.cli.commands.servers:serve", "Run the gateway."),
    "migrate": ("gateway.cli.commands.servers:migrate", "Migrate the database to this version."),
    "secrets": (
        "gateway.cli.commands.identity.secrets:secrets",
        "Show the secret keys, and re-encrypt everything with the newest.",
    ),
    "doctor": ("gateway.cli.commands.doctor:examine", "Check the installation, and show remedies."),
    "tenant": (
        "gateway.cli.commands.tenants:tenant",
        "List, show, create, rename and delete tenants; permit upstreams.",
    ),
    "ceilings": (
        "gateway.cli.commands.tenants:ceilings",
        "Show and set the ceilings of a tenant's limits, and the bounds of its admins.",
    ),
    "egress": ("gateway.cli.commands.tenants:egress", "Show and set the private upstreams of a tenant."),
    "operator": (
        "gateway.cli.commands.identity.operators:operator",
        "Manage the operators of the installation: their keys, and grants to people and workloads.",
    ),
    "key": ("gateway.cli.commands.identity.keys:key", "List, create, show, rotate, revoke and delete a tenant's keys."),
    "issuer": (
        "gateway.cli.commands.identity.issuers:issuer",
        "Accept the access tokens of authorization servers.",
    ),
    "person": ("gateway.cli.commands.identity.people:person", "List, deny and allow people who signed in."),
    "access": (
        "gateway.cli.commands.identity.access:access",
        "Set and check which keys and people may use which primitives.",
    ),
    "client": ("gateway.cli.commands.identity.oauth_clients:client", "Register clients of the authorization server."),
    "account": (
        "gateway.cli.commands.identity.people:account",
        "List and disconnect the accounts of users at upstreams.",
    ),
    "consent": ("gateway.cli.commands.identity.people:consent", "List and revoke the consents of people to clients."),
    "grant": ("gateway.cli.commands.identity.people:grant", "List and revoke the grants of people to clients."),
    "source": ("gateway.cli.commands.sources:source", "Import OpenAPI documents and read their reports."),
    "live-source": (
        "gateway.cli.commands.live_sources:live_source",
        "Declare, review and attach editors, MCP servers and programs.",
    ),
    "tool": ("gateway.cli.commands.tools:tool", "List, show, declare, switch and try a tenant's tools."),
    "override": (
        "gateway.cli.commands.overrides:override",
        "Change imported tools: names, texts, levels, pinned arguments.",
    ),
    "resource": (
        "gateway.cli.commands.resources:resource",
        "List, show, declare, switch and try a tenant's resources.",
    ),
    "resource-template": (
        "gateway.cli.commands.resources:template",
        "List, show, declare, switch and try a tenant's resource templates.",
    ),
    "prompt": ("gateway.cli.commands.prompts:prompt", "List, show, declare, switch and try a tenant's prompts."),
    **GROUPS,
    "credential": ("gateway.cli.commands.credentials:credential", "Store the secrets that handlers name."),
    "webhook": (
        "gateway.cli.commands.updates.webhooks:webhook",
        "Let a tenant's own systems report changed resources.",
    ),
    "webhook-endpoint": (
        "gateway.cli.commands.webhook_endpoints:webhook_endpoint",
        "Send signed events about approvals to the tenant's own systems.",
    ),
    "policy": ("gateway.cli.commands.policies:policy", "Show, set and check the tenant's policy and limits."),
    "approval": ("gateway.cli.commands.approvals:approval", "Decide about calls that need another person's approval."),
    "diff": ("gateway.cli.manifests.commands:diff", "Compare manifests with the gateway."),
    "plan": ("gateway.cli.manifests.commands:plan", "Write a plan of the changes that manifests make."),
    "apply": ("gateway.cli.manifests.commands:apply", "Make a tenant's objects those of manifests or of a plan."),
    "export": ("gateway.cli.manifests.export:export", "Print a tenant's objects as manifests."),
    "schema": ("gateway.cli.manifests.export:schema", "Print the JSON Schema of manifests, for editors."),
    "audit": ("gateway.cli.commands.audit:audit", "Read a tenant's audit trail."),
    "call": ("gateway.cli.commands.call:call_tool", "Call a tool through MCP."),
    "connect": ("gateway.cli.connect.command:connect", "Write the tenant's URL and key into a client's configuration."),
    "explain": ("gateway.cli.commands.call:explain_tool", "Explain the course of a call without making it."),
    "stdio": ("gateway.cli.stdio.command:stdio", "Speak MCP on standard input and output."),
    "provide": ("gateway.cli.stdio.command:provide", "Connect a program that offers tools, over its standard streams."),
    "login": ("gateway.cli.contexts.commands:login", "Store a gateway, a tenant and a key as a context."),
    "logout": ("gateway.cli.contexts.commands:logout", "Delete the stored key of a context."),
    "context": ("gateway.cli.contexts.commands:context", "List, show, select and delete stored contexts."),
    "completion": ("gateway.cli.commands.completion:print_completion", "Print the completion script of a shell."),
}

_HELP = "An MCP gateway: a tenant's OpenAPI documents as tools behind one URL."
_EPILOG = f"""\b
Environment:
  GATEWAY_URL           URL of the gateway (http://127.0.0.1:8080), or of its admin listener
  GATEWAY_TENANT        the tenant, for commands with --tenant
  GATEWAY_KEY           the tenant's key for `call`
  GATEWAY_OPERATOR_KEY  the operator's key; default: the key in the data folder
  GATEWAY_CONTEXT       the context, if none of --url and GATEWAY_URL is given

\b
Exit codes:
{describe_exits()}
"""

gateway: click.Group = LazyGroup(name="gateway", lazy=_COMMANDS, help=_HELP, epilog=_EPILOG)
for _option in (json_option, key_option, tenant_option, context_option, url_option):
    gateway = _option(gateway)


def _print_version(context: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if not is_asked or context.resilient_parsing:
        return
    echo(f"gateway {VERSION}")
    context.exit()


gateway.params.append(
    click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_version,
        help="Show the version and exit.",
    )
)


def main() -> NoReturn:
    """Run the command line and exit with its exit code; a failure prints no traceback."""
    open_closed_descriptors()
    omit_unused()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # received text can be unencodable
    sys.exit(_run())


def _run() -> int:
    if "_GATEWAY_COMPLETE" in os.environ:
        from gateway.cli.commands.completion import register_shells  # noqa: PLC0415  # only for the shell

        register_shells()
    try:
        result: object = gateway.main(prog_name="gateway", standalone_mode=False)
    except Failure as failure:
        failure.show()
        return failure.exit_code
    except click.ClickException as error:
        usage = io.StringIO()
        error.show(usage)
        echo(usage.getvalue().rstrip(), err=True)
        return ExitCode.USAGE
    except click.Abort:
        return ExitCode.INTERRUPTED
    except Exception as error:
        logging.getLogger("gateway.cli").debug("command_failed", exc_info=True)
        failure_from_any(error).show()
        return ExitCode.FAILED
    return result if isinstance(result, int) else ExitCode.OK
