"""Options for the kind of a live source and its settings, and the request fields built from them."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import click

from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, pick
from gateway.cli.input.options import DURATION
from gateway.domain.live_sources import LiveKind

_Command = TypeVar("_Command", bound=Callable[..., Any])


_TIMEOUT_S = click.FloatRange(1, 300)


class _TimeoutType(click.ParamType[float]):
    """A duration, or a number of seconds as in earlier releases, which may have a fraction."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number of seconds; any other format is a usage error."""
        text = str(value)
        seconds = DURATION.convert(text, param, ctx) if text[-1:].isalpha() else text
        return float(_TIMEOUT_S(seconds, param, ctx))


def add_live_options(command: _Command) -> _Command:
    """Add the options of the kinds and their settings to a command."""
    for decorate in (
        click.option("--timeout", "timeout_s", type=_TimeoutType(), help="The time limit of one request, 1s to 5m."),
        click.option(
            "--env", multiple=True, metavar="NAME=VALUE", help="An environment variable of the program, for --program."
        ),
        click.option("--header", multiple=True, metavar="NAME=VALUE", help="A header of each request, for --mcp."),
        click.option("--transport", type=click.Choice(["auto", "streamable", "sse"]), help="The transport, for --mcp."),
        click.option("--program", metavar="LINE", help="A program that the gateway starts; for the operator."),
        click.option("--agent", is_flag=True, help="A program that connects to the gateway."),
        click.option("--neovim", metavar="ADDRESS", help="An editor: unix:/path/of.sock or tcp:HOST:PORT."),
        click.option("--mcp", metavar="URL", help="Another MCP server."),
    ):
        command = decorate(command)
    return command


def live_fields(options: Mapping[str, Any]) -> JsonObject:
    """Build `kind` and `settings` from the options that were given.

    Raises:
        Failure: the options name two kinds, or settings without a kind.
    """
    kinds: dict[LiveKind, JsonObject] = {}
    if options["mcp"] is not None:
        kinds[LiveKind.MCP] = {"url": options["mcp"]}
    if options["neovim"] is not None:
        kinds[LiveKind.NEOVIM] = {"address": options["neovim"]}
    if options["agent"]:
        kinds[LiveKind.AGENT] = {}
    if options["program"] is not None:
        kinds[LiveKind.COMMAND] = {"argv": shlex.split(options["program"])}
    more: JsonObject = {
        "transport": options["transport"],
        "headers": _pairs(options["header"], "--header"),
        "env": _pairs(options["env"], "--env"),
        "timeout_s": options["timeout_s"],
    }
    settings = {name: value for name, value in more.items() if value}
    if len(kinds) > 1 or (settings and not kinds):
        raise Failure("give one of --mcp, --neovim, --agent and --program with their settings", ExitCode.USAGE)
    fields: JsonObject = {}
    for kind, place in kinds.items():
        fields = {"kind": kind.value, "settings": place | settings}
    return fields


def write_live_options(fields: JsonObject) -> Iterator[str]:
    """Yield the option that describes the MCP server of an example."""
    yield f"--mcp {pick(fields, 'settings', 'url')}"


def _pairs(given: Iterable[str], option: str) -> JsonObject:
    pairs: JsonObject = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or name in pairs:
            raise Failure(f"{option} {text!r}: use NAME=VALUE, each name once", ExitCode.USAGE)
        pairs[name] = value
    return pairs
