"""Differences between manifests and a gateway, as text for people: one line for each object and changed value."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gateway.cli.input.json_fields import JsonObject, text_at, to_objects
from gateway.cli.manifests.limits import MAX_SHOWN_CHANGES
from gateway.cli.manifests.tenant_request import name_of_object, objects_of
from gateway.cli.output.printing import Shown, colored, join
from gateway.cli.output.tables import clean, count, shorten

NONE = "none"
_LONGEST = 200
"""Cells of a value in a line; longer ones are cut, because `--json` has them whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    mark: str
    color: str
    word: str


_LOOKS = {
    "create": _Look(mark="+", color="green", word="to create"),
    "update": _Look(mark="~", color="yellow", word="to change"),
    "rename": _Look(mark="→", color="yellow", word="to rename"),
    "adopt": _Look(mark="=", color="cyan", word="to adopt"),
    "delete": _Look(mark="-", color="red", word="to delete"),
}
_UNKNOWN = _Look(mark="?", color="yellow", word="to handle otherwise")


def is_different(response: JsonObject) -> bool:
    """True if the response has an object that would change, or did."""
    return any(text_at(one, "action") != NONE for one in objects_of(response))


def summary(responses: Sequence[JsonObject]) -> str:
    """The numbers of objects by action, such as `1 to create, 2 to delete, 5 unchanged`."""
    actions = Counter(text_at(one, "action") for response in responses for one in objects_of(response))
    parts = [f"{actions.pop(action)} {look.word}" for action, look in _LOOKS.items() if actions[action]]
    unchanged = actions.pop(NONE, 0)
    parts += [f"{number} {_UNKNOWN.word}" for number in actions.values() if number]
    return ", ".join([*parts, f"{unchanged} unchanged"])


def render(tenant: str, response: JsonObject) -> Shown:
    """The differences of one tenant, in color on a terminal (https://no-color.org)."""
    lines: list[Shown] = [f"tenant {clean(tenant)}: {summary([response])}"]
    for one in objects_of(response):
        lines += _lines(one)
    return join(lines)


def _lines(one: JsonObject) -> Iterator[Shown]:
    action = text_at(one, "action")
    has_drifted = one.get("drift") is True
    if action == NONE and not has_drifted:
        return
    look = _LOOKS.get(action, _UNKNOWN)
    drift = " (differs from what this set applied last)" if has_drifted else ""
    yield colored(f"  {look.mark} {clean(name_of_object(one))}{drift}", look.color)
    changes = to_objects(one.get("changes"))
    for change in changes[:MAX_SHOWN_CHANGES]:
        pointer = shorten(text_at(change, "pointer") or "all", _LONGEST)
        if change.get("is_cut") is True:
            yield f"      {pointer}: (too large to show)"
        elif change.get("is_secret") is True:
            yield f"      {pointer}: (secret)"
        elif action in {"create", "delete"}:
            yield f"      {pointer}: {_value(change, 'after' if action == 'create' else 'before')}"
        else:
            yield f"      {pointer}: {_value(change, 'before')} → {_value(change, 'after')}"
    if len(changes) > MAX_SHOWN_CHANGES:
        yield f"      and {count(len(changes) - MAX_SHOWN_CHANGES, 'other change')}"


def _value(change: JsonObject, side: str) -> str:
    return shorten(json.dumps(change.get(side), ensure_ascii=False), _LONGEST)
