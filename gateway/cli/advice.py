"""Advice on imports without tools, and on tool lists that are expensive for clients."""

import re
from collections import Counter
from collections.abc import Sequence

from gateway.cli.input.json_fields import JsonObject, as_text, number_at, text_at, to_list, to_objects
from gateway.cli.limits import MAX_PATH_OPTIONS
from gateway.cli.output.reports import count_tools
from gateway.cli.output.tables import clean, count, render_pairs, thousands

_LARGE_LIST_TOKENS = 10_000
"""Size from which a tool list counts as large: a twentieth of a model's context of 200,000 tokens."""
_SERVER_REASON = re.compile(r"\bservers?\b")
_BASE_URL = "give --base-url https://HOST/PATH: the document does not declare the URL of its API"


def explain_no_tools(report: JsonObject) -> str:
    """Explain why an import has no tools, and name the option that would change this, if any."""
    reasons = _skipped_reasons(report)
    if not reasons:
        return "no tool: the document declares no operation under `paths`"
    if any(_SERVER_REASON.search(reason) for reason in reasons):
        return f"no tool: {_BASE_URL}"
    if all(reason.startswith("not selected") for reason in reasons):
        return "no tool: the --include and --exclude options, or the document's own extensions, leave no operation"
    return f"no tool: every operation was skipped, for example: {clean(reasons[0])}"


def advise(report: JsonObject) -> str:
    """Name options that would improve the import; empty if there are none."""
    tokens = number_at(report, "estimated_tokens")
    if count_tools(report) and tokens >= _LARGE_LIST_TOKENS:
        message = f"large: clients read about {thousands(tokens)} tokens of tools before the first call; to list fewer:"
        return f"{message}\n" + "\n".join(
            f"  {line}" for line in render_pairs(_narrowing_options(report)).plain.splitlines()
        )
    if count_tools(report) and any(_SERVER_REASON.search(reason) for reason in _skipped_reasons(report)):
        return f"for the operations without a server: {_BASE_URL}"
    return ""


def _skipped_reasons(report: JsonObject) -> Sequence[str]:
    operations = [found for found in to_objects(report.get("operations")) if found.get("tool") is None]
    return [as_text(reason) for found in operations for reason in to_list(found.get("reasons")) or ["no reason given"]]


def _narrowing_options(report: JsonObject) -> list[tuple[str, str]]:
    """Return options that shorten the list, each with its effect: query tools, GET only, frequent path prefixes."""
    made = [found for found in to_objects(report.get("operations")) if found.get("tool") is not None]
    of = f"of {count(len(made), 'tool')}"
    reads = sum(text_at(found, "method").upper() == "GET" for found in made)
    parts = Counter(pattern for pattern in _patterns([text_at(found, "path") for found in made]))
    return [
        ("--expose query", "a few tools that search, describe and call all operations"),
        *([("--include-method GET", f"{thousands(reads)} {of}, which only read")] if 0 < reads < len(made) else []),
        *(
            (f"--include-path '{part}'", f"{thousands(number)} {of}")
            for part, number in parts.most_common(MAX_PATH_OPTIONS)
        ),
    ]


def _patterns(paths: Sequence[str]) -> Sequence[str]:
    """Return a shell pattern per path, up to the first segment that not all paths share, if it needs no escaping."""
    split = [path.split("/")[1:] for path in paths]
    shared = 0
    while len({tuple(segments[: shared + 1]) for segments in split}) == 1 and len(split[0]) > shared:
        shared += 1
    begun = ["/" + "/".join(segments[: shared + 1]) for segments in split if len(segments) > shared + 1]
    return [f"{start}/*" for start in begun if re.fullmatch(r"[A-Za-z0-9_/.~-]+", start)]
