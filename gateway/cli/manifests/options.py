"""Options of the commands for manifests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import update_wrapper
from pathlib import Path
from typing import Any, TypeVar

import click

from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.manifests.tenant_request import Permissions
from gateway.kinds.manifests import PROTECTED_KINDS

Command = TypeVar("Command", bound=Callable[..., Any])
_PERMISSION_NAMES = tuple(field.name for field in fields(Permissions))

_files_option = click.option(
    "--file",
    "-f",
    "files",
    multiple=True,
    metavar="FILE",
    help="A manifest, a folder of manifests (*.yaml, *.yml, *.json, recursively), or - for standard input. May be"
    " repeated.",
)
_outside_option = click.option(
    "--allow-outside",
    "leaves_folder",
    is_flag=True,
    help="Also read secrets and linked files outside of the folder of the manifests.",
)
_PERMISSIONS = (
    click.option(
        "--set", "owner", metavar="NAME", help="The set that owns the objects. Without it, nothing is owned or pruned."
    ),
    click.option("--adopt", is_flag=True, help="Take over objects that no set, or another one, owns."),
    click.option("--prune", is_flag=True, help="Delete the objects that the set owns and no manifest names."),
    click.option("--prune-protected", is_flag=True, help=f"Also prune {PROTECTED_KINDS}."),
    click.option(
        "--max-deletions",
        type=click.IntRange(0),
        metavar="N",
        help="Refuse to prune more objects of a tenant; default: 20.",
    ),
    click.option("--commit", metavar="TEXT", help="The commit of the manifests, for the audit trail."),
    click.option("--author", metavar="TEXT", help="The author of the change, for the audit trail."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestArguments:
    """The manifests that a command names, and its permissions."""

    files: Sequence[str]
    leaves_folder: bool
    permissions: Permissions


def manifest_options(body: Callable[..., None]) -> Callable[..., None]:
    """Add the options for manifests and permissions to a command, which receives them as `wanted`."""

    def run(context: AdminContext, /, *, files: tuple[str, ...], leaves_folder: bool, **given: Any) -> None:
        permissions = Permissions(**{name: given.pop(name) for name in _PERMISSION_NAMES})
        permissions.check()
        given["wanted"] = ManifestArguments(files=files, leaves_folder=leaves_folder, permissions=permissions)
        body(context, **given)

    command: Callable[..., None] = with_tenant(update_wrapper(run, body))
    for option in reversed((_files_option, _outside_option, *_PERMISSIONS)):
        command = option(command)
    return command


def output_option(text: str) -> Callable[[Command], Command]:
    """The option for the place of the output."""
    return click.option("--output", "-o", type=click.Path(path_type=Path), metavar="PATH", help=text)
