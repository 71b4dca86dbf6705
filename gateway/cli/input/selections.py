"""Selection of a document's operations: its command line options and its description."""

from collections.abc import Callable, Mapping
from typing import Any, TypedDict, TypeVar

import click

from gateway.cli.input.json_fields import JsonObject

_Command = TypeVar("_Command", bound=Callable[..., Any])
_RULE_MEMBERS = (
    ("tag", "TAG", "with this tag"),
    ("path", "GLOB", "whose path matches this pattern"),
    ("method", "METHOD", "of this HTTP method"),
    ("operation", "GLOB", "whose operationId matches this pattern"),
)


class SelectionOptions(TypedDict):
    """The options that select operations."""

    include_operation: tuple[str, ...]
    include_method: tuple[str, ...]
    include_path: tuple[str, ...]
    include_tag: tuple[str, ...]
    exclude_operation: tuple[str, ...]
    exclude_method: tuple[str, ...]
    exclude_path: tuple[str, ...]
    exclude_tag: tuple[str, ...]
    all_operations: bool


def selection_options(command: _Command) -> _Command:
    """Add the options that select operations to a command."""
    everything = "Remove the stored selection; the extensions of the document decide."
    decorate = click.option("--all-operations", is_flag=True, help=everything)
    command = decorate(command)
    for verb, does, ending in (
        ("exclude", "Exclude operations", "."),
        ("include", "Include only operations", "; other --include options narrow further."),
    ):
        for kind, metavar, which in _RULE_MEMBERS:
            text = f"{does} {which}. May be repeated{ending}"
            command = click.option(f"--{verb}-{kind}", multiple=True, metavar=metavar, help=text)(command)
    return command


def selection_fields(options: SelectionOptions) -> JsonObject:
    """Build the fields of an import request from the options.

    An included operation must match every kind of option that was given; an excluded one, any of them.
    """
    included = _non_empty(
        {
            "operation_ids": options["include_operation"],
            "methods": options["include_method"],
            "paths": options["include_path"],
            "tags": options["include_tag"],
        }
    )
    excluded = _non_empty(
        {
            "operation_ids": options["exclude_operation"],
            "methods": options["exclude_method"],
            "paths": options["exclude_path"],
            "tags": options["exclude_tag"],
        }
    )
    fields: JsonObject = {"include": [], "exclude": []} if options["all_operations"] else {}
    if included:
        fields["include"] = [included]
    if excluded:
        fields["exclude"] = [{member: values} for member, values in excluded.items()]
    return fields


def _non_empty(members: Mapping[str, tuple[str, ...]]) -> Mapping[str, list[str]]:
    return {member: list(values) for member, values in members.items() if values}
