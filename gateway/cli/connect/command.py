"""`gateway connect`: writes a tenant's MCP URL and key into the configuration of a client, and checks it."""

import sys
from pathlib import Path
from urllib.parse import urlsplit

import click

from gateway.cli.connect.checks import count_listed
from gateway.cli.connect.clients import CLIENTS
from gateway.cli.connect.files import ClientFile
from gateway.cli.contexts.chosen import tenant_key
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.options import chosen_mcp_url, mcp_options, wants_json
from gateway.cli.output.printing import echo, show
from gateway.cli.output.tables import render_table
from gateway.domain.tenancy.client_setup import ClientTarget


@click.command("connect")
@click.argument("client", required=False, type=click.Choice(list(CLIENTS)))
@click.option("--name", help="The server's name in the client; default: the tenant, and the profile.")
@click.option("--file", "path", type=click.Path(path_type=Path), help="Another file than the client's own.")
@click.option("--dry-run", is_flag=True, help="Print the change of the file, with the key, and write nothing.")
@click.option("--undo", is_flag=True, help="Remove the server, or put back the one that had its name before.")
@click.option("--check/--no-check", default=True, help="List the tools as the client would, afterwards.")
@mcp_options
def connect(  # one for each option
    client: str | None, name: str | None, path: Path | None, *, dry_run: bool, undo: bool, check: bool
) -> None:
    """Connect CLIENT on this machine to the MCP URL; without CLIENT, list the clients and their files.

    One server is set in the client's file, and everything else stays. Each change leaves a copy of the former
    file beside it (`.before-gateway`). If the gateway refuses the key, the server is as before. The file holds the key.

    \b
    Example:
      gateway --tenant acme connect cursor
    """
    if client is None:
        _list()
        return
    chosen_client = CLIENTS[client]
    file = ClientFile(client=chosen_client, path=path or chosen_client.path(Path.home(), sys.platform))
    if undo:
        _undo(file, name or _name(chosen_mcp_url()), is_dry=dry_run)
        return
    url = chosen_mcp_url()
    target = ClientTarget(name=name or _name(url), url=url, key=tenant_key(url))
    entry = chosen_client.entry(target)
    with file.kept_if_refused(target.name):
        is_there = file.servers().get(target.name) == entry
        _write(file, target.name, None if is_there else file.changed(target.name, entry), is_dry=dry_run)
        if dry_run:
            return
        tools = count_listed(file, target.name) if check else None
    facts = {"client": client, "file": str(file.path), "server": target.name, "tools": tools}
    found = "" if tools is None else f"; {tools} tools are listed"
    text = f"{chosen_client.title} has the server {target.name}{found}. Next: {chosen_client.then}."
    show(facts, lambda: text, as_json=wants_json())


def _list() -> None:
    rows = [(one.name, one.title, one.path(Path.home(), sys.platform)) for one in CLIENTS.values()]
    facts = [{"client": name, "title": title, "file": str(path), "exists": path.exists()} for name, title, path in rows]
    columns = [(name, title, str(path), "yes" if path.exists() else "no") for name, title, path in rows]
    show(facts, lambda: render_table(("client", "title", "file", "exists"), columns), as_json=wants_json())


def _undo(file: ClientFile, name: str, *, is_dry: bool) -> None:
    former = file.former(name)
    if name not in file.servers():
        raise Failure(f"{file.path} has no server {name!r}", ExitCode.NOT_FOUND)
    _write(file, name, file.changed(name, former), is_dry=is_dry)


def _write(file: ClientFile, name: str, text: str | None, *, is_dry: bool) -> None:
    if text is None:
        echo(f"{file.path}: {name} is there already", err=True)
    elif is_dry:
        echo(file.difference(text))
    else:
        file.write(text)
        echo(f"wrote {file.path}", err=True)


def _name(url: str) -> str:
    """The tenant of an MCP URL, and its profile."""
    segments = urlsplit(url).path.split("/")
    names = [part for part in segments[segments.index("t") + 1 : -1] if part] if "t" in segments else []
    return "-".join(names) or "gateway"
