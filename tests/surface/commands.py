"""The surface of the command line: arguments, options and examples of each command.

`docs/cli.md` has the help of each option; here is what click declares: spellings, types, defaults and the rest.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from gateway.cli.main import gateway
from tests.surface.canonical import Json
from tests.surface.differences import ADDED, CHANGED, REMOVED, Difference, compare_names

COMMANDS, OPTIONS, ARGUMENTS = "commands", "options", "arguments"
_EXAMPLE = re.compile(r"Examples?:\n(.*?)(?:\n\n|\Z)", re.DOTALL)


def surface() -> Json:
    """Read the surface from the tree of commands."""
    found = dict(_commands(gateway, click.Context(gateway, info_name="gateway")))
    everywhere = [(name, option) for command in found.values() for name, option in command["options"].items()]
    shared: dict[str, Json] = {
        name: option for name, option in everywhere if everywhere.count((name, option)) > len(found) // 2
    }
    folded = {
        name: _without_empty(
            {
                **command,
                "options": {key: option for key, option in command["options"].items() if shared.get(key) != option},
                "shared": sorted(key for key, option in command["options"].items() if shared.get(key) == option),
            }
        )
        for name, command in found.items()
    }
    return {"commands": folded, "shared": shared}


def compare(before: Json, after: Json) -> Iterator[Difference]:
    """Yield the differences of two forms."""
    old, new = before["commands"], after["commands"]
    yield from compare_names(COMMANDS, old, new)
    for name in sorted(old.keys() & new.keys()):
        for word in ("help", "examples", "hidden"):
            if old[name].get(word) != new[name].get(word):
                yield Difference(group=COMMANDS, name=name, change=CHANGED, detail=word)
        yield from _compare_arguments(name, old[name].get("arguments", []), new[name].get("arguments", []))
        yield from _compare_options(name, _options(old[name], before), _options(new[name], after))


def _without_empty(command: Json) -> Json:
    return {name: value for name, value in command.items() if value}


def _commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, dict[str, Any]]]:
    found: dict[str, Any] = {
        "help": " ".join((command.help or "").partition("\n\n")[0].split()),
        "examples": _examples(command),
        "arguments": [_argument(one, context) for one in command.params if isinstance(one, click.Argument)],
        "options": {_name_of(one): _option(one) for one in command.params if isinstance(one, click.Option)},
    }
    yield context.command_path, found | ({"hidden": True} if command.hidden else {})
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from _commands(below, click.Context(below, context, name))


def _examples(command: click.Command) -> list[str]:
    texts = (command.help or "", command.epilog if isinstance(command.epilog, str) else "")
    found = [match for text in texts for match in _EXAMPLE.findall(text.replace("\b\n", ""))]
    return [line.strip() for example in found for line in example.splitlines() if line.strip()]


def _argument(one: click.Argument, context: click.Context) -> Json:
    return {"name": one.make_metavar(context), "required": one.required, "nargs": one.nargs, **_type(one)}


def _name_of(one: click.Option) -> str:
    return max(one.opts, key=len)


def _option(one: click.Option) -> Json:
    found: dict[str, Any] = _type(one)
    found |= {"spellings": sorted(one.opts)} if len(one.opts) > 1 else {}
    found |= {"off": sorted(one.secondary_opts)} if one.secondary_opts else {}
    for word in ("required", "multiple", "hidden", "is_flag"):
        found |= {word: True} if getattr(one, word) else {}
    found |= {"environment": one.envvar} if one.envvar else {}
    return found


def _type(one: click.Parameter) -> dict[str, Any]:
    kind = one.type
    found: dict[str, Any] = {"type": kind.name}
    if isinstance(kind, click.Choice):
        found["choices"] = sorted(map(str, kind.choices))
    if isinstance(kind, click.IntRange | click.FloatRange):
        found["range"] = [kind.min, kind.max]
    default = one.default
    if isinstance(default, list | tuple) and default:
        found["default"] = [*default]
    elif isinstance(default, str | int | float | Path) and default is not False:
        found["default"] = str(default) if isinstance(default, Path) else default
    return found


def _options(command: Json, surface_of: Json) -> Mapping[str, Json]:
    named = {name: surface_of["shared"][name] for name in command.get("shared", ())}
    return {**command.get("options", {}), **named}


def _compare_arguments(name: str, before: list[Json], after: list[Json]) -> Iterator[Difference]:
    for place in range(max(len(before), len(after))):
        old = before[place] if place < len(before) else None
        new = after[place] if place < len(after) else None
        if old is None and new is not None:
            must = new["required"]
            detail = "required" if must else ""
            yield Difference(
                group=ARGUMENTS, name=f"{name} {new['name']}", change=ADDED, detail=detail, is_breaking=must
            )
        elif new is None and old is not None:
            yield Difference(group=ARGUMENTS, name=f"{name} {old['name']}", change=REMOVED, is_breaking=True)
        elif old is not None and new is not None and old != new:
            facts = [one for one in sorted(old.keys() | new.keys()) if old.get(one) != new.get(one)]
            yield Difference(
                group=ARGUMENTS,
                name=f"{name} {old['name']}",
                change=CHANGED,
                detail=", ".join(f"{fact} {old.get(fact)} → {new.get(fact)}" for fact in facts),
                is_breaking=any(_is_breaking(fact, old, new) for fact in facts),
            )


def _compare_options(name: str, before: Mapping[str, Json], after: Mapping[str, Json]) -> Iterator[Difference]:
    for option in sorted(before.keys() | after.keys()):
        place = f"{name} {option}"
        if option not in after:
            renamed = next((key for key, one in after.items() if option in one.get("spellings", ())), None)
            detail = "" if renamed is None else f"stays a spelling of {renamed}"
            yield Difference(group=OPTIONS, name=place, change=REMOVED, detail=detail, is_breaking=renamed is None)
        elif option not in before:
            must = after[option].get("required", False)
            yield Difference(
                group=OPTIONS, name=place, change=ADDED, detail="required" if must else "", is_breaking=must
            )
        else:
            old, new = before[option], after[option]
            for fact in sorted(old.keys() | new.keys()):
                if old.get(fact) != new.get(fact):
                    yield Difference(
                        group=OPTIONS,
                        name=place,
                        change=CHANGED,
                        detail=f"{fact} {old.get(fact)} → {new.get(fact)}",
                        is_breaking=_is_breaking(fact, old, new),
                    )


def _is_breaking(fact: str, old: Json, new: Json) -> bool:
    """True if a command line that the former declaration accepts may be refused, or mean something else."""
    match fact:
        case "choices" | "spellings" | "off":
            return not set(old.get(fact, ())) <= set(new.get(fact, ())) or (not old.get(fact) and fact == "choices")
        case "range":
            return _is_narrower(old.get(fact, [None, None]), new.get(fact, [None, None]))
        case "required":
            return bool(new.get(fact))
        case "multiple":
            return not new.get(fact)
        case "nargs":
            return new.get(fact) != -1
        case "name" | "hidden":
            return False
        case _:
            return True  # type, default, flag, environment


def _is_narrower(old: list[float | None], new: list[float | None]) -> bool:
    low = new[0] is not None and (old[0] is None or new[0] > old[0])
    return low or (new[1] is not None and (old[1] is None or new[1] < old[1]))
