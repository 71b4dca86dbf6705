"""Options that describe a live source, and the request fields built from them."""

import shlex
from collections.abc import Callable, Iterable
from typing import Any, TypedDict, TypeVar

import click

from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject
from gateway.cli.input.options import DURATION
from gateway.domain.live_sources import LiveKind
from gateway.domain.sources import Exposure
from gateway.domain.tenancy.policy import Safety

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


class LiveOptions(TypedDict):
    """The fields of a live source, as options."""

    mcp: str | None
    neovim: str | None
    agent: bool
    program: str | None
    transport: str | None
    header: tuple[str, ...]
    env: tuple[str, ...]
    timeout_s: float | None
    prefix: str | None
    credential: str | None
    caller_credential: str | None
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    safety: tuple[str, ...]
    accepts_changes: bool | None
    expose: str | None
    enabled: bool | None


def live_options(command: _Command) -> _Command:
    """Add the fields of one live source to a command."""
    for decorate in (
        click.option("--enabled/--disabled", default=None, help="Enable or disable the live source."),
        click.option(
            "--expose",
            type=click.Choice([exposure.value for exposure in Exposure]),
            help="List its tools as tools, through the query tools, or both; default: tools.",
        ),
        click.option(
            "--accept-changes/--review-changes",
            "accepts_changes",
            default=None,
            help="Accept new tools and changed definitions with or without a review.",
        ),
        click.option(
            "--safety",
            multiple=True,
            metavar="TOOL=LEVEL",
            help=f"The safety level of a remote tool: {', '.join(Safety)}.",
        ),
        click.option(
            "--exclude", multiple=True, metavar="GLOB", help="A pattern of remote names to exclude; may be repeated."
        ),
        click.option(
            "--include", multiple=True, metavar="GLOB", help="A pattern of remote names to include; may be repeated."
        ),
        click.option(
            "--caller-credential",
            metavar="NAME",
            help="The credential that names the caller, for calls; empty for none.",
        ),
        click.option("--credential", metavar="NAME", help="The stored credential to send; empty for none."),
        click.option("--prefix", help="The prefix of the names of its tools and prompts; empty for none."),
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


def live_fields(options: LiveOptions) -> JsonObject:
    """Build the request fields from the options that were given.

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
    return fields | _shared_fields(options)


def _shared_fields(options: LiveOptions) -> JsonObject:
    flags: JsonObject = {name: options[name] for name in ("accepts_changes", "expose", "enabled")}
    texts: JsonObject = {name: options[name] for name in ("prefix", "credential", "caller_credential")}
    lists: JsonObject = {"include": list(options["include"]), "exclude": list(options["exclude"])}
    return {
        **{name: value for name, value in flags.items() if value is not None},
        **{name: value or None for name, value in texts.items() if value is not None},
        **{name: value for name, value in lists.items() if value},
        **({"safety": _pairs(options["safety"], "--safety")} if options["safety"] else {}),
    }


def _pairs(given: Iterable[str], option: str) -> JsonObject:
    pairs: JsonObject = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or name in pairs:
            raise Failure(f"{option} {text!r}: use NAME=VALUE, each name once", ExitCode.USAGE)
        pairs[name] = value
    return pairs
