"""Descriptions of a tool: the document's text, or a generated sentence, and a line about the result.

A paragraph that only lists media types is removed if no argument can choose them.
"""

import re
from collections.abc import Iterator, Sequence

from gateway.domain.json_access import Object, as_list, as_object
from gateway.openapi.document.json_access import NOTHING, Unusable, is_true_at, list_at, object_at, text_at
from gateway.openapi.document.plain_text import plain_text
from gateway.openapi.document.references import References, ref_tokens
from gateway.openapi.operation.limits import (
    MAX_DESCRIBED_SCHEMAS,
    MAX_DESCRIPTION_LENGTH,
    MAX_NAMED_LENGTH,
    MAX_NAMED_MEMBERS,
    MAX_RETURNS_LENGTH,
    MAX_TITLE_LENGTH,
)
from gateway.openapi.operation.media_types import is_json, json_rank
from gateway.openapi.operation.operations import Operation
from gateway.openapi.operation.schema_assembly import Argument

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_MEDIA_TYPES = re.compile(
    r"^(?=[^\n]*?\bmedia types?\b)[^\n]*+\n++((?:[ \t]*+[-*][ \t]++[*_`]*+[\w.+-]++/[\w.+*-]++[^\n]*+(?:\n|$))++)\n*+",
    re.IGNORECASE | re.MULTILINE,
)
_MEDIA_TYPE = re.compile(r"[-*][ \t]++[*_`]*+([\w.+-]++/[\w.+*-]++)")


def title_of(operation: Operation, description: str) -> str:
    """Return the title; empty if the description begins with it."""
    title = " ".join(plain_text(operation.hints.title or text_at(operation.node, "summary") or "").split())
    begin = " ".join(description[: 2 * MAX_TITLE_LENGTH].removeprefix("Deprecated. ").split())
    return "" if begin.casefold().startswith(title.casefold().rstrip(".")) else cut(title, MAX_TITLE_LENGTH)


def describe_tool(operation: Operation, arguments: Sequence[Argument], chosen: Sequence[str], returns: str) -> str:
    """Return the description of a tool; `chosen` contains the media types that an argument can choose.

    Without a description of the operation, that of its path item is used; otherwise a sentence is generated.
    """
    words = operation.hints.description or _words(operation.node) or _words(operation.item)
    words = _without_media_types(words, chosen) if words else _sentence(operation, arguments)
    words = f"Deprecated. {words}" if is_true_at(operation.node, "deprecated") else words
    room = MAX_DESCRIPTION_LENGTH - (len(returns) + 2 if returns else 0)
    return f"{cut(words, room)}\n\n{returns}" if returns else cut(words, room)


class ReturnLines:
    """Descriptions of the responses of one document, one line each; a shared schema is described once."""

    def __init__(self, references: References) -> None:
        self._references = references
        self._shapes: dict[tuple[str, int], str] = {}

    def describe(self, status: str, answer: Object) -> str:
        """Return one line about a success response; empty if the document does not describe it."""
        content = object_at(answer, "content")
        if not content:
            return "" if "content" not in answer and "description" not in answer else f"Returns: {status}, no content."
        named = [name for name in content if is_json(name)]
        if not named:
            return cut(f"Returns: {status}, {', '.join(content)}.", MAX_RETURNS_LENGTH)
        media = as_object(content[min(named, key=json_rank)]) or NOTHING
        shape = self._shape(media.get("schema"), 0)
        return cut(f"Returns: {status}, {shape}.", MAX_RETURNS_LENGTH) if shape else ""

    def _shape(self, schema: object, depth: int) -> str:
        """A phrase such as `a list of Issue (id, title)`; empty if nothing is known."""
        node = as_object(schema) or NOTHING
        ref = node.get("$ref")
        if not isinstance(ref, str):
            return self._describe(node, "", depth)
        if (ref, depth) not in self._shapes:
            name = (ref_tokens(ref) or [""])[-1] if ref.startswith("#/") else ""
            self._shapes[ref, depth] = self._describe(node, name, depth)
        return self._shapes[ref, depth]

    def _describe(self, node: Object, name: str, depth: int) -> str:
        try:
            target = self._references.follow(node, "a schema")
        except Unusable:
            return ""
        if target.get("type") == "array" and depth < 1:
            inner = self._shape(target.get("items"), depth + 1)
            return f"a list of {inner or 'values'}"
        names = list(dict.fromkeys(self._properties(target)))
        kind = plain_text(name or text_at(target, "title") or "")[:60]
        named = target.get("type")
        kind = kind or (named if isinstance(named, str) else "object" if names else "")
        return f"{kind} ({_listed(names)})" if names and kind else kind

    def _properties(self, target: Object) -> Iterator[str]:
        """The names of the properties of a schema and of its merged parts."""
        waiting, seen = [target], 0
        while waiting and seen < MAX_DESCRIBED_SCHEMAS:
            node, seen = waiting.pop(0), seen + 1
            yield from object_at(node, "properties")
            for part in as_list(node.get("allOf")) or ():
                try:
                    waiting.append(self._references.follow(part, "a schema"))
                except Unusable:
                    continue


def cut(text: str, limit: int) -> str:
    """Return the text, or its beginning with an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _words(node: Object) -> str:
    summary, text = (plain_text(text_at(node, key) or "") for key in ("summary", "description"))
    return text if text.startswith(summary) else f"{summary}\n\n{text}".strip()


def _sentence(operation: Operation, arguments: Sequence[Argument]) -> str:
    """A sentence of method and path, the operationId in words, the arguments, and the tags."""
    parts = [plain_text(f"{operation.method} {operation.path}")]
    words = " ".join(_WORD.findall(operation.operation_id or "")[:12]).lower()
    if words:
        parts[0] += f": {words}"
    for label, names in (
        ("Requires", [item.name for item in arguments if item.is_required]),
        ("Takes", [item.name for item in arguments if not item.is_required]),
        ("Tags:", [plain_text(tag) for tag in list_at(operation.node, "tags") if isinstance(tag, str)]),
    ):
        if names:
            parts.append(f"{label} {_listed(names)}")
    return ". ".join(parts) + ("." if len(parts) > 1 or words else "")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(plain_text(name)[:MAX_NAMED_LENGTH] for name in names[:MAX_NAMED_MEMBERS])
    return f"{shown} and {len(names) - MAX_NAMED_MEMBERS} more" if len(names) > MAX_NAMED_MEMBERS else shown


def _without_media_types(text: str, chosen: Sequence[str]) -> str:
    """The text without lists of media types that no argument can choose, and without the sentence above each list."""

    def keep(found: re.Match[str]) -> str:
        is_chosen = not set(chosen).isdisjoint(_MEDIA_TYPE.findall(found[1]))
        return found[0] if is_chosen else ""

    return _MEDIA_TYPES.sub(keep, text).strip() if "edia type" in text else text
