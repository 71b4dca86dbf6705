"""Risk warnings of a call that needs an approval: facts about its request and its tool, in plain words.

Texts come from the preview of the call, so credentials are redacted and unprintable characters are escaped.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final, cast
from urllib.parse import parse_qsl, urlsplit

import msgspec

from gateway.calls.limits import (
    MAX_COUNTED_BYTES,
    MAX_FACT_LENGTH,
    MAX_FACTS,
    MAX_LISTS,
    MAX_SEARCHED_DESCRIPTION_LENGTH,
    MAX_STATEMENTS,
)
from gateway.domain.calls.approvals import RequestShown
from gateway.domain.json_text import decode_json
from gateway.domain.primitives import Primitive
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.handlers.interfaces import Prepared
from gateway.handlers.previews.requests import escape, truncate

_EFFECTS: Final[Mapping[str, str]] = {
    "DELETE": "Deletes",
    "PUT": "Replaces the data at",
    "PATCH": "Changes parts of",
    "POST": "Sends new data or a command to",
    "GET": "Reads",
    "HEAD": "Reads",
}
_RUNNERS: Final[Mapping[PrimitiveOrigin, str]] = {
    PrimitiveOrigin.CODE: "Code of the operator",
    PrimitiveOrigin.LIVE: "A live source",
    PrimitiveOrigin.BUILTIN: "The gateway",
    PrimitiveOrigin.CUSTOM: "A declared handler",
}
_SENTENCE = re.compile(r"[^.!?\n]++")
_REVERSIBILITY = re.compile(
    r"\b(?:irreversib|cannot be (?:undone|restored|recovered|reverted)|can(?:'|no)t undo|permanent|"
    r"undo|restor|recover|revert|soft.delet|trash)",
    re.IGNORECASE,
)
_QUOTED_LENGTH = 200
"""Characters of a sentence that are quoted before and after the word."""

_ACTION_PREFIXES = ("sends ", "may send ", "calls ", "may call ", "and makes ")
_LEFT_OUT = re.compile(r"… \(\d+ |\(\d+ bytes that are not text\)|^and \d+ further ", re.MULTILINE)
"""The marks of `gateway.handlers.previews.requests` for omitted parts."""


class _Annotations(msgspec.Struct, rename="camel"):
    destructive_hint: bool | None = None


class _Definition(msgspec.Struct):
    description: str | None = None
    annotations: _Annotations | None = None


_decode_definition = msgspec.json.Decoder(_Definition, strict=False).decode


def show_call(preview: str, prepared: Prepared, name: str) -> RequestShown:
    """Return the request in the preview of a call, or the call's name and arguments if it is not a single request."""
    head, *lines = preview.split("\n")
    if prepared.request is None:
        return RequestShown(method="", url=escape(name), body=head.removeprefix(escape(name)).strip())
    method, _, url = head.partition(" ")
    end = lines.index("") if "" in lines else len(lines)
    headers = tuple((key, value) for key, _, value in (line.partition(": ") for line in lines[:end]))
    return RequestShown(method=method, url=url, headers=headers, body="\n".join(lines[end + 1 :]))


def describe_risk(subject: Tool | Primitive, prepared: Prepared, shown: RequestShown, preview: str) -> tuple[str, ...]:
    """Return facts about the call as sentences; the first one states the effect."""
    facts = [*_effects(subject, prepared, shown, preview), *islice(_definition_statements(subject), MAX_STATEMENTS)]
    if prepared.request is not None:
        facts += [
            *_list_lengths(prepared.request.body),
            *_repeated_parameters(shown.url),
        ]  # limited, because the caller chooses their number
    return tuple(truncate(fact, MAX_FACT_LENGTH) for fact in facts[:MAX_FACTS])


def _effects(subject: Tool | Primitive, prepared: Prepared, shown: RequestShown, preview: str) -> Iterator[str]:
    request = prepared.request
    if request is None:
        runner = _RUNNERS.get(subject.origin, "The gateway")
        yield f"{runner} runs {escape(subject.name)} with these arguments; not all effects are known."
        yield from (f"It {line}" for line in preview.split("\n")[1:] if line.startswith(_ACTION_PREFIXES))
    else:
        parts = urlsplit(shown.url)
        effect = _EFFECTS.get(request.method, f"Sends {request.method} to")
        yield f"{effect} {parts.path or '/'} at {parts.netloc}."
    if _LEFT_OUT.search(preview):  # guard: approval-shows-its-gaps
        yield "Not all of the request is shown."
    level = f"The safety level is {subject.level.value}"
    yield f"{level}: {'; '.join(subject.safety_reasons)}." if subject.safety_reasons else f"{level}."


def _repeated_parameters(url: str) -> Iterator[str]:
    names = Counter(name for name, _ in parse_qsl(urlsplit(url).query, max_num_fields=1000, keep_blank_values=True))
    yield from (f"{truncate(name, 60)!r} is in the query {count} times." for name, count in names.items() if count > 1)


def _list_lengths(body: bytes | None) -> Iterator[str]:
    """Count the entries of lists in a JSON body, which often name the objects that are changed."""
    if not body or len(body) > MAX_COUNTED_BYTES:
        return
    try:
        found: object = decode_json(body)
    except (msgspec.DecodeError, RecursionError):
        return
    if isinstance(found, list):
        yield f"The body is a list of {len(cast('list[object]', found))} entries."
    if isinstance(found, dict):
        members = cast("dict[str, object]", found).items()
        lists = [(name, cast("list[object]", value)) for name, value in members if isinstance(value, list)]
        for name, entries in lists[:MAX_LISTS]:
            yield f"{truncate(escape(name), 60)!r} in the body lists {len(entries)} entries."


def _definition_statements(subject: Tool | Primitive) -> Iterator[str]:
    """Quote what the definition states about destruction and reversibility."""
    try:
        stated = _decode_definition(subject.definition)
    except msgspec.MsgspecError:
        return
    if stated.annotations is not None and stated.annotations.destructive_hint:
        yield "The definition marks it as destructive."
    for sentence in _SENTENCE.findall((stated.description or "")[:MAX_SEARCHED_DESCRIPTION_LENGTH]):
        if found := _REVERSIBILITY.search(sentence):
            quoted = sentence[max(found.start() - _QUOTED_LENGTH, 0) : found.end() + _QUOTED_LENGTH]
            yield f"The description states: {escape(quoted.strip())!r}."
