"""`gateway override` and `gateway source overrides`: a tenant's changes of imported tools."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click

from gateway.cli.arguments import parse_arguments
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, pick, text_at, to_object
from gateway.cli.input.options import limit_option
from gateway.cli.kinds.commands import KindCommands
from gateway.cli.kinds.options import SpecialOptions
from gateway.cli.kinds.output import render_list
from gateway.cli.kinds.places import RENAME, naming_of
from gateway.cli.object_names import object_argument
from gateway.domain.overrides import CHANGES, Hints
from gateway.kinds.members import settable
from gateway.kinds.primitives import TOOL
from gateway.kinds.sources import OVERRIDE, SOURCE

_PINNED, _NAME = "pinned", "name"
_HINTS = {one.option.name: one.name for one in settable(Hints)}


def _add_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of pinned arguments, and hidden ones of earlier releases."""
    for option in (
        click.option(
            "--default", "defaults", multiple=True, type=click.Choice((_NAME, *CHANGES)), hidden=True, expose_value=True
        ),
        click.option("--hint", "hints", multiple=True, metavar="HINT=yes|no", hidden=True),
        click.option(
            "--unpin", "unpins", multiple=True, metavar="ARGUMENT", help="Let callers set the argument again."
        ),
        click.option(
            "--pin",
            "pins",
            multiple=True,
            metavar="ARGUMENT=VALUE",
            help="Always send this value; callers cannot set the argument. May be repeated.",
        ),
    ):
        command = option(command)
    return command


def _fields(given: Mapping[str, Any]) -> JsonObject:
    """The fields that the special options describe; `_complete` finishes those of pinned arguments and of the name."""
    fields: JsonObject = {}
    if given["hints"]:
        fields["annotations"] = dict(map(_parse_hint, given["hints"]))
    if given["pins"] or given["unpins"]:
        fields[_PINNED] = {"pins": given["pins"], "unpins": given["unpins"]}
    for member in given["defaults"]:
        if member in fields or given.get(f"member_{member}") not in {None, ()}:
            raise Failure(f"--default {member} cannot be combined with a value for {member}", ExitCode.USAGE)
        fields[RENAME if member == _NAME else member] = None
    return fields


def _parse_hint(text: str) -> tuple[str, bool]:
    name, _, value = text.partition("=")
    if name not in _HINTS or value not in {"yes", "no"}:
        reason = f"{text!r} is not a hint; use HINT=yes or HINT=no, with one of {', '.join(_HINTS)}"
        raise Failure(reason, ExitCode.USAGE)
    return _HINTS[name], value == "yes"


def _write(_: JsonObject) -> Iterator[str]:
    yield from ()


def _complete(context: AdminContext, verb: str, fields: JsonObject) -> JsonObject:
    """Read the values of pinned arguments, by the schema of an existing tool, and add them to the pinned ones."""
    is_reset = RENAME in fields and fields[RENAME] is None
    if not is_reset and fields.get(_PINNED) is None:
        return fields
    tool = context.admin.get(context.tenant_path(TOOL.plural, text_at(fields, _NAME))) if verb == "update" else {}
    document = to_object(pick(tool, "status", "document")) or tool
    renamed = {RENAME: text_at(document, "definition", _NAME)} if is_reset else {}
    if fields.get(_PINNED) is None:
        return fields | renamed
    given: Any = fields[_PINNED]
    stored = to_object(pick(tool, "status", "override", _PINNED))
    if missing := [name for name in given["unpins"] if name not in stored]:
        raise Failure(f"{missing[0]!r} is not pinned", ExitCode.USAGE)
    parsed = parse_arguments(given["pins"], whole=None, schema=pick(document, "definition", "inputSchema"))
    left = {name: value for name, value in stored.items() if name not in given["unpins"]}
    return fields | renamed | {_PINNED: {**left, **parsed} or None}


override = KindCommands(
    kind=OVERRIDE,
    special=SpecialOptions(add=_add_options, fields=_fields, write=_write),
    complete=_complete,
    loss=", so that the document applies again",
).group()


@click.command("overrides")
@object_argument(naming_of(SOURCE))
@limit_option
@with_tenant
def list_overrides(context: AdminContext, name: str, limit: int | None) -> None:
    """List the overrides of the tools of source NAME, including those whose operation no longer exists."""
    items = list(context.admin.pages(context.tenant_path("sources", name, "overrides"), limit=limit))
    context.show(items, lambda: render_list(OVERRIDE, items))
