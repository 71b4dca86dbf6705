"""Commands that tools, resources, resource templates and prompts have beside those of their declarations."""

import shlex
from collections.abc import Sequence
from typing import Any

import click

from gateway.cli.bulk import ObjectAction, Objects, act_on_each, several_objects
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.input.json_fields import JsonObject, pick, text_at, to_objects
from gateway.cli.input.options import yes_option
from gateway.cli.kinds.commands import KindCommands
from gateway.cli.kinds.places import naming_of
from gateway.cli.output.tables import shorten
from gateway.kinds.kind import Kind


def make_group(kind: Kind[Any]) -> click.Group:
    """Build the command group of a kind of primitives."""
    facts = read_listed_facts if kind.name == "tool" else None
    group = KindCommands(kind=kind, validates=True, facts=facts).group()
    for verb, is_enabled in (("enable", True), ("disable", False)):
        group.add_command(_switch_command(kind, verb, is_enabled=is_enabled))
    return group


def find_place(context: AdminContext, kind: Kind[Any], name: str) -> str:
    """Return the path of the object with this name, URI or id.

    Raises:
        Failure: there is no such object.
    """
    return context.tenant_path(kind.plural, naming_of(kind).find(context, name))


def render_trial(response: JsonObject, result: str) -> str:
    """Render a tried call: the request, which is named as sent only if it certainly was, then the result."""
    is_request = bool(text_at(response, "request", "url"))
    is_refused = pick(response, "result", "_meta", "gateway/error") is not None
    label = ("request" if is_refused else "sent") if is_request else "call"
    lines = [f"{label}: {text_at(response, 'request', 'summary')}"]
    if body := text_at(response, "request", "body"):
        lines.append(f"body: {shorten(body, 200)}")
    return "\n".join([*lines, "", result])


def read_listed_facts(context: AdminContext, place: str) -> Sequence[tuple[str, str]]:
    """The listed name of a tool, and the clients that have difficulties with it."""
    listed = context.admin.get(f"{place}/listed")
    limits = [
        (text_at(limit, "clients"), f"{text_at(limit, 'effect')}; {text_at(limit, 'remedy')}")
        for limit in to_objects(listed.get("limits"))
    ]
    return [("listed as", text_at(listed, "name")), *limits]


def _switch_command(kind: Kind[Any], verb: str, *, is_enabled: bool) -> click.Command:
    action = ObjectAction(
        send=lambda context, item: context.admin.send(
            "PATCH", context.tenant_path(kind.plural, item), {"enabled": is_enabled}
        ),
        describe=lambda name, _: f"{verb}d {name}",
        verb=verb,
    )

    @several_objects(naming_of(kind))
    @yes_option
    @with_tenant
    def run(context: AdminContext, objects: Objects, yes: bool) -> None:
        act_on_each(context, objects, action, noun=kind.words, is_sure=yes)

    example = f"gateway {kind.name.replace('_', '-')} {verb} {shlex.quote(kind.example_address)}"
    about = f"{verb.capitalize()} {kind.one}; its declaration stays."
    return click.command(verb, help=f"{about}\n\n\b\nExample:\n  {example}")(run)
