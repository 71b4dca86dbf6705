"""`gateway login`, `logout` and `context`: stored gateways, tenants and keys."""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import click
from click.shell_completion import CompletionItem

from gateway.app.local.loopback import is_loopback
from gateway.cli.click_group import Commands
from gateway.cli.client.admin_api import AdminApi, path_of
from gateway.cli.client.locations import check_key, check_url, mcp_url
from gateway.cli.client.mcp_endpoint import McpClient
from gateway.cli.contexts.stored import (
    StoredContext,
    find_context,
    forget_key,
    read_contexts,
    store_key,
    write_contexts,
)
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.options import given_option, json_option, key_option, tenant_option, wants_json
from gateway.cli.output.printing import echo, prompt_secret, show
from gateway.cli.output.tables import render_pairs, render_table

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_MCP_PATH = re.compile(r"(?P<base>.*)/t/(?P<tenant>[^/]+)(?:/[^/]+)?/mcp")


def complete_contexts(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names of contexts that begin with the incomplete one."""
    try:
        return [CompletionItem(name) for name in read_contexts()[0] if name.startswith(incomplete)]
    except Failure:
        return []


def _context_argument(*, required: bool = True, nargs: int = 1, name: str = "name") -> Callable[[Any], Any]:
    return click.argument(
        name, required=required, nargs=nargs, metavar="NAME" if required else None, shell_complete=complete_contexts
    )


@click.command("login")
@click.argument("url")
@click.option("--name", help="The name of the context; default: the tenant, or the host of URL.")
@click.option("--check/--no-check", default=True, help="Ask the gateway whether it accepts the key.")
@tenant_option
@key_option
@json_option
def login(url: str, name: str | None, check: bool) -> None:
    """Store a gateway, a tenant and a key as a context, and make it the current one.

    The key is asked for on a terminal, and otherwise read from standard input. It is stored in the keyring of the
    system, or else in a file that only you can read. URL is that of the gateway, or the MCP URL of a tenant.

    \b
    Example:
      gateway login https://gateway.example.com --tenant acme
      gateway login https://gateway.example.com/t/acme/mcp --name work < key.txt
    """
    base, of_url = _split(check_url(url))
    tenant = given_option("tenant") or of_url
    named = name or tenant or urlsplit(base).hostname or ""
    if not _NAME.fullmatch(named):
        raise Failure("--name: must be letters, digits, `_`, `.` and `-`, at most 64", ExitCode.USAGE)
    if base.startswith("http://") and not is_loopback(base):
        echo("warning: the key is sent without encryption to an http URL", err=True)
    key = check_key(given_option("key") or _ask_key())
    if check:
        _check(base, tenant, key)
    contexts, _ = read_contexts()
    if named in contexts:
        forget_key(contexts[named])
    made = StoredContext(name=named, url=base, tenant=tenant, key_in=store_key(named, key))
    write_contexts({**contexts, named: made}, named)
    show(made.fields, lambda: f"signed in: {named} is the current context; its key is in the {made.key_in}", **_form())


@click.command("logout")
@_context_argument(required=False)
@json_option
def logout(name: str | None) -> None:
    """Delete the stored key of a context, by default of the current one; its URL and tenant stay.

    \b
    Example:
      gateway logout work
    """
    contexts, current = read_contexts()
    if name is None and current is None:
        raise Failure("no context is the current one; give a name", ExitCode.USAGE)
    found = find_context(name or str(current))
    forget_key(found)
    write_contexts({**contexts, found.name: replace(found, key_in=None)}, current)
    show({"signed_out": found.name}, lambda: f"deleted the key of {found.name}", **_form())


@click.group("context", cls=Commands)
def context() -> None:
    """List, show, select and delete stored contexts: gateways, each with a tenant and a key."""


@context.command("list")
@json_option
def list_contexts() -> None:
    """List the contexts."""
    contexts, current = read_contexts()
    facts = [{**one.fields, "current": one.name == current} for one in contexts.values()]
    rows = [
        ("yes" if one.name == current else "", one.name, one.url, one.tenant or "", one.key_in or "")
        for one in contexts.values()
    ]
    show(facts, lambda: render_table(("current", "name", "url", "tenant", "key in"), rows), **_form())


@context.command("show")
@_context_argument(required=False)
@json_option
def show_context(name: str | None) -> None:
    """Show a context, by default the current one; its key is never shown."""
    _, current = read_contexts()
    if name is None and current is None:
        raise Failure("no context is the current one; give a name", ExitCode.USAGE)
    found = find_context(name or str(current))
    pairs = [("name", found.name), ("url", found.url), ("tenant", found.tenant or ""), ("key in", found.key_in or "")]
    show(found.fields, lambda: render_pairs(pairs), **_form())


@context.command("use")
@_context_argument(required=False)
@click.option("--none", "is_none", is_flag=True, help="Select no context.")
@json_option
def use_context(name: str | None, is_none: bool) -> None:
    """Make a context the current one, whose URL, tenant and key commands use without options and variables.

    \b
    Example:
      gateway context use work
    """
    if (name is None) != is_none:
        raise Failure("give a name, or --none", ExitCode.USAGE)
    contexts, _ = read_contexts()
    selected = None if name is None else find_context(name).name
    write_contexts(contexts, selected)
    show({"current": selected}, lambda: f"{selected or 'no context'} is the current context", **_form())


@context.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_contexts)
@json_option
def delete_contexts(names: tuple[str, ...]) -> None:
    """Delete contexts with their stored keys.

    \b
    Example:
      gateway context delete work
    """
    deleted = [find_context(name) for name in dict.fromkeys(names)]
    contexts, current = read_contexts()
    for one in deleted:
        forget_key(one)
    left = {name: one for name, one in contexts.items() if one not in deleted}
    write_contexts(left, current if current in left else None)
    facts = [{"deleted": one.name} for one in deleted]
    show(facts, lambda: "\n".join(f"deleted {one.name}" for one in deleted), **_form())


def _form() -> Mapping[str, bool]:
    return {"as_json": wants_json()}


def _split(url: str) -> tuple[str, str | None]:
    """The URL of the gateway, and the tenant of an MCP URL."""
    found = _MCP_PATH.fullmatch(url)
    return (found["base"], found["tenant"]) if found else (url, None)


def _ask_key() -> str:
    key = prompt_secret("Key") if sys.stdin.isatty() else sys.stdin.readline()
    if not key.strip():
        raise Failure("no key: give it on standard input", ExitCode.USAGE)
    return key


def _check(url: str, tenant: str | None, key: str) -> None:
    """Ask the gateway for the tenant, or for the tools of a key that is for MCP only.

    Raises:
        Failure: the gateway refused the key, or is not reached.
    """
    try:
        with AdminApi(url, key) as admin:
            admin.get(path_of("tenants", tenant) if tenant else "/tenants?limit=1")
    except Failure as failure:
        if tenant is None or failure.exit_code not in {ExitCode.DENIED, ExitCode.NOT_FOUND}:
            raise
        with McpClient(mcp_url(url, tenant), key) as endpoint:
            next(endpoint.tools(), None)
