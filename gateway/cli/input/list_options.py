"""The options of `list`: search text, filters of the noun, order, and limit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import update_wrapper
from typing import Any

import click

from gateway.cli.input.options import limit_option, names_of
from gateway.kinds.kind import Kind, ListFilter
from gateway.kinds.record import AnyRecord

_Command = Callable[..., None]
ListOption = Callable[[_Command], _Command]
"""Adds options to a command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListArguments:
    """The arguments of a list command: the query for the admin API, and the maximum number of items."""

    query: Mapping[str, str]
    limit: int | None


_SEARCH = click.option("--search", metavar="TEXT", help="Only items with this text in a name or description.")


def list_options_of(kind: Kind[Any] | AnyRecord) -> ListOption:
    """Add the options of the `list` command of a kind; the command receives them as `wanted`."""
    return _list_options(kind.sorts, list(_filters_of(kind).values()))


def filter_options_of(kind: Kind[Any] | AnyRecord) -> tuple[Sequence[str], ListOption]:
    """The options that select from the list of a kind, and the names of their parameters."""
    options: Sequence[tuple[str, ListOption]] = [*_filters_of(kind).items(), ("search", _SEARCH)]

    def decorate(body: _Command) -> _Command:
        for _, option in reversed(options):
            body = option(body)
        return body

    return [name for name, _ in options], decorate


def query_of(given: Mapping[str, Any]) -> Mapping[str, str]:
    """The query for the admin API of the options that were given."""
    return {name: _query_text(value) for name, value in given.items() if value is not None}


def _filters_of(kind: Kind[Any] | AnyRecord) -> Mapping[str, ListOption]:
    found_by = kind.query_key if isinstance(kind, Kind) and kind.is_found_by_key else None
    return {name: _filter(name, each) for name, each in kind.filters.items() if name != found_by}


def _filter(name: str, each: ListFilter[Any]) -> ListOption:
    if each.type is bool:
        flags = "--enabled/--disabled" if name == "enabled" else f"--{name}/--not-{name}"
        return click.option(flags, name, default=None, help=each.about)
    choices = [str(one.value) for one in each.type] if issubclass(each.type, StrEnum) else None
    if choices:
        return click.option(f"--{name}", type=click.Choice(choices), help=each.about)
    return click.option(f"--{name}", shell_complete=names_of(name), help=each.about)


def _list_options(names: Sequence[str], filters: Sequence[ListOption]) -> ListOption:
    def decorate(body: _Command) -> _Command:
        def run(*, limit: int | None, **given: Any) -> None:
            body(wanted=ListArguments(query=query_of(given), limit=limit))

        command: _Command = update_wrapper(run, body)
        options: Sequence[ListOption] = (
            limit_option,
            *([_sort(names)] if names else []),
            *reversed(filters),
            _SEARCH,
        )
        for option in options:
            command = option(command)
        return command

    return decorate


def _sort(names: Sequence[str]) -> ListOption:
    sorts = [*names, *(f"-{name}" for name in names)]
    about = f"Order by {' or '.join(names)}; a `-` in front reverses the order, as in --sort=-{names[-1]}."
    return click.option("--sort", type=click.Choice(sorts), metavar="FIELD", help=about)


def _query_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
