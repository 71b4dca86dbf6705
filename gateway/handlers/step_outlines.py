"""The requests and calls that a list of steps makes, as lines that a person reads before confirming the list.

The lines follow from the declaration alone, which the digest of the call covers. Places to fill are shown as they are
declared; the arguments stand beside them. A tool that is called is judged and confirmed by itself as well.
"""

from collections.abc import Iterator

from gateway.definitions.handler_specs import CallStep, HttpStep, IfStep, Step, StepsSpec

_MOST_LINES = 20
_LONGEST_URL = 300


def outline(spec: StepsSpec) -> str:
    """One line for each different request and call, in order; empty where the list makes none."""
    lines = list(dict.fromkeys(_lines(spec.steps, "sends", "calls")))
    further = len(lines) - _MOST_LINES
    return "\n".join(
        [*lines[:_MOST_LINES], *([f"and makes {further} further requests and calls"] if further > 0 else [])]
    )


def _lines(steps: tuple[Step, ...], sends: str, calls: str) -> Iterator[str]:
    for step in steps:
        match step:
            case HttpStep(http=http):
                yield f"{sends} {http.method.upper()} {_shortened(http.url.source)}"
            case CallStep(tool=tool):
                yield f"{calls} the tool {tool}"
            case IfStep():
                yield from _lines((*step.then, *step.otherwise), "may send", "may call")
            case _:
                pass


def _shortened(url: str) -> str:
    """The URL on one line; its origin is never a template, so it is always there."""
    text = " ".join(url.split())
    return text if len(text) <= _LONGEST_URL else f"{text[: _LONGEST_URL - 1]}…"
