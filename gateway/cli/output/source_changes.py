"""Text of the changes between two versions of a source: sensitive ones and suspicious text first."""

from collections.abc import Iterator

from gateway.cli.input.json_fields import JsonObject, as_text, number_at, text_at, to_list, to_objects
from gateway.cli.output.printing import Shown
from gateway.cli.output.reports import join_parts, render_findings
from gateway.cli.output.tables import clean, count, render_table, thousands

_CHANGE_KINDS = ("removed", "renamed", "changed", "added")
_COUNTED_KINDS = ("added", "removed", "renamed", "changed")
_NO_VALUE = "(nothing)"


def count_changes(changes: JsonObject) -> str:
    """Render one line with the numbers of added, removed, renamed and changed tools; empty for a first import."""
    counts = [(word, len(to_list(changes.get(word)))) for word in _COUNTED_KINDS] if changes else []
    if any(number for _, number in counts):
        return f"tools: {', '.join(f'{thousands(number)} {word}' for word, number in counts)}"
    if number_at(changes, "document_left_out") or to_list(changes.get("document")):
        return "no tool is changed, but what the query tools show"
    return "no tool is changed" if changes else ""


def render_changes(changes: JsonObject) -> Shown:
    """Render sensitive differences and suspicious text, one line for each changed tool, and the numbers of changes."""
    first = (_render_sensitive(changes), render_findings(changes))
    return join_parts(*first, _render_table(changes), count_changes(changes))


def render_differences(changes: JsonObject) -> Shown:
    """Render every difference with its old and new value, grouped by tool."""
    tools = [_render_tool(word, change) for word in _CHANGE_KINDS for change in to_objects(changes.get(word))]
    shown = to_objects(changes.get("document"))
    omitted = number_at(changes, "document_left_out")
    document = "\n".join(["what the query tools show:", *_render_all(shown, omitted)]) if shown else ""
    return join_parts(*tools, document)


def _render_sensitive(changes: JsonObject) -> str:
    lines = [
        f"  {text_at(one, 'kind')}: {_value(one, 'old')} -> {_value(one, 'new')} ({_name_tools(one)})"
        for one in to_objects(changes.get("sensitive"))
    ]
    return "\n".join(["who receives calls, with which secret, and who is asked:", *lines]) if lines else ""


def _name_tools(change: JsonObject) -> str:
    number, named = number_at(change, "tools"), [as_text(name) for name in to_list(change.get("named"))]
    return clean(f"{count(number, 'tool')}: {', '.join(named)}{', …' if number > len(named) else ''}")


def _render_table(changes: JsonObject) -> Shown:
    rows = [
        [
            word,
            ", ".join(as_text(impact) for impact in to_list(change.get("impacts"))),
            *(text_at(change, member) for member in ("method", "path", "tool", "was", "recent_calls")),
        ]
        for word in _CHANGE_KINDS
        for change in to_objects(changes.get(word))
    ]
    titles = ("change", "impact", "method", "path", "tool", "was", "calls in 7 days")
    return render_table(titles, rows) if rows else ""


def _render_tool(word: str, change: JsonObject) -> str:
    moved = text_at(change, "moved")
    place = f"{text_at(change, 'method')} {text_at(change, 'path')}"
    was = text_at(change, "was")
    more = f", was {was}" if was else f", {'now' if word == 'removed' else 'was'} {moved}" if moved else ""
    lines = _render_all(to_objects(change.get("differences")), number_at(change, "differences_left_out"))
    return "\n".join([clean(f"{word} {text_at(change, 'tool')} ({place}{more})"), *lines])


def _render_all(differences: list[JsonObject], omitted: int) -> Iterator[str]:
    for one in differences:
        yield clean(f"  {text_at(one, 'impact')} {text_at(one, 'kind')} at {text_at(one, 'pointer') or '/'}")
        yield f"    - {_value(one, 'old')}"
        yield f"    + {_value(one, 'new')}"
    if omitted:
        yield f"  and {count(omitted, 'further difference')}"


def _value(difference: JsonObject, side: str) -> str:
    return _NO_VALUE if difference.get(side) is None else clean(text_at(difference, side))
