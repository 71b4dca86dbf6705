"""`gateway profile`: named selections of a tenant's primitives."""

from collections.abc import Callable
from typing import Any, TypedDict, TypeVar, Unpack

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.input.declared_items import create_all, declared, set_all, update_all
from gateway.cli.input.json_fields import JsonObject, number_at, text_at, to_object, to_objects
from gateway.cli.input.list_options import ListArguments, list_options
from gateway.cli.item_commands import add_delete, add_show
from gateway.cli.output.tables import render_pairs, render_table, thousands
from gateway.domain.primitives import Family
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.profiles import MAX_SUMMARY_THRESHOLD

_NOUN = "profiles"
_Command = TypeVar("_Command", bound=Callable[..., Any])
_RULE_MEMBERS = (
    ("name", "names", "GLOB", "whose name or URI matches this pattern"),
    ("source", "sources", "SOURCE", "of this source"),
    ("tag", "tags", "TAG", "of operations with this tag"),
    ("method", "methods", "METHOD", "of operations of this HTTP method"),
    ("safety", "safety", "LEVEL", f"of this level: {', '.join(Safety)}"),
    ("family", "families", "FAMILY", f"of this family: {', '.join(Family)}"),
)
"""The members of a rule: option, member of the API, metavar and description of the match in the help."""


class ProfileOptions(TypedDict):
    """The fields of a profile, as options."""

    name: str | None
    description: str | None
    include_name: tuple[str, ...]
    include_source: tuple[str, ...]
    include_tag: tuple[str, ...]
    include_method: tuple[str, ...]
    include_safety: tuple[str, ...]
    include_family: tuple[str, ...]
    exclude_name: tuple[str, ...]
    exclude_source: tuple[str, ...]
    exclude_tag: tuple[str, ...]
    exclude_method: tuple[str, ...]
    exclude_safety: tuple[str, ...]
    exclude_family: tuple[str, ...]
    structured_once: bool | None
    selects_fields: bool | None
    summary_threshold: int | None


def profile_options(command: _Command) -> _Command:
    """Add FILE and the fields of one profile to a command."""
    for verb, does, ending in (
        ("exclude", "Exclude primitives", "."),
        ("include", "Include only primitives", "; other --include options narrow further."),
    ):
        for kind, _, metavar, which in reversed(_RULE_MEMBERS):
            text = f"{does} {which}. May be repeated{ending}"
            command = click.option(f"--{verb}-{kind}", multiple=True, metavar=metavar, help=text)(command)
    once = "Send JSON results as structured content alone, with a sentence as text."
    fields = "Give imported tools the argument _fields, which selects parts of JSON results."
    summary = (
        "Summarise results above this number of bytes, at least 4096, and list read_result, which reads their parts."
        " 0: no summaries."
    )
    threshold = click.IntRange(0, MAX_SUMMARY_THRESHOLD)
    command = click.option("--summary-threshold", type=threshold, metavar="BYTES", help=summary)(command)
    command = click.option("--selects-fields/--no-selects-fields", default=None, help=fields)(command)
    command = click.option("--structured-once/--no-structured-once", default=None, help=once)(command)
    command = click.option("--description", help="The description, for people.")(command)
    command = click.option("--name", help="The name, which is part of its URL.")(command)
    return click.argument("file", required=False)(command)


@click.group(cls=Commands)
def profile() -> None:
    """List, show, declare and delete a tenant's profiles."""


@profile.command("list")
@list_options(_NOUN)
@with_tenant
def list_profiles(context: AdminContext, wanted: ListArguments) -> None:
    """List a tenant's profiles, with the cost of each for a client."""
    items = list(context.admin.pages(context.tenant_path(_NOUN), limit=wanted.limit, query=wanted.query))
    titles = ("name", "tools", "bytes", "tokens (estimate)", "description")
    rows = [
        (
            text_at(item, "name"),
            thousands(number_at(item, "counts", "tools")),
            thousands(number_at(item, "tools_list_bytes")),
            thousands(number_at(item, "estimated_tokens")),
            text_at(item, "description"),
        )
        for item in items
    ]
    context.show(items, lambda: render_table(titles, rows, numbers=(1, 2, 3)))


@profile.command("create")
@profile_options
@with_tenant
def create_profile(context: AdminContext, file: str | None, **options: Unpack[ProfileOptions]) -> None:
    """Create every profile that FILE declares (JSON or YAML; - reads stdin), or the one that the options describe.

    \b
    Example:
      gateway profile create --name support --description "Reading alone" \\
        --include-safety safe --exclude-name 'admin_*'
    """
    create_all(context, _NOUN, declared(file, _fields(options)))


@profile.command("update")
@profile_options
@with_tenant
def update_profile(context: AdminContext, file: str | None, **options: Unpack[ProfileOptions]) -> None:
    """Change what FILE or the options give; everything else stays. Given rules replace all rules of their kind.

    \b
    Example:
      gateway profile update --name support --structured-once
      gateway profile update --name support --exclude-name 'admin_*'
    """
    update_all(context, _NOUN, declared(file, _fields(options)))


@profile.command("set")
@profile_options
@with_tenant
def set_profile(context: AdminContext, file: str | None, **options: Unpack[ProfileOptions]) -> None:
    """Create or replace every profile that FILE declares, or the one that the options describe.

    \b
    Example:
      gateway profile set --name support --description "Reading alone" \\
        --include-safety safe --exclude-name 'admin_*'
    """
    set_all(context, _NOUN, declared(file, _fields(options)))


def _describe(found: JsonObject) -> str:
    counts = [(name.replace("_", " "), text_at(found, "counts", name)) for name in to_object(found.get("counts"))]
    pairs = [
        ("name", text_at(found, "name")),
        ("id", text_at(found, "id")),
        ("description", text_at(found, "description")),
        *counts,
        ("list bytes", thousands(number_at(found, "tools_list_bytes"))),
        ("tokens (estimate)", thousands(number_at(found, "estimated_tokens"))),
        ("structured once", "yes" if found.get("structured_once") else "no"),
        ("selects fields", "yes" if found.get("selects_fields") else "no"),
        (
            "summary threshold",
            thousands(number_at(found, "summary_threshold")) if found.get("summary_threshold") else "no",
        ),
        *(("include", _rule(rule)) for rule in to_objects(found.get("include"))),
        *(("exclude", _rule(rule)) for rule in to_objects(found.get("exclude"))),
    ]
    return render_pairs(pairs)


def _rule(rule: JsonObject) -> str:
    return "; ".join(f"{name} {text_at(rule, name)}" for name in rule if rule[name]) or "everything"


def _fields(options: ProfileOptions) -> JsonObject:
    """Build the fields from the options: one include rule, and one exclude rule of each kind."""
    given: JsonObject = {**options}
    included: JsonObject = {
        member: given[f"include_{kind}"] for kind, member, *_ in _RULE_MEMBERS if given[f"include_{kind}"]
    }
    excluded = [{member: given[f"exclude_{kind}"]} for kind, member, *_ in _RULE_MEMBERS if given[f"exclude_{kind}"]]
    single = ("name", "description", "structured_once", "selects_fields", "summary_threshold")
    fields: JsonObject = {name: given[name] for name in single if given[name] is not None}
    fields |= {"include": [included]} if included else {}
    return fields | ({"exclude": excluded} if excluded else {})


add_show(profile, _NOUN, "Show one profile with its rules.", describe=_describe)
add_delete(profile, _NOUN, "Delete a profile that no key is bound to.")
