"""Details of an outline with plain descriptions: HTML becomes text, and what a browser would hide is removed.

Only titles, summaries and descriptions are changed. Examples, defaults and other values of a document stay as declared.
"""

from collections.abc import Mapping, Sequence

from gateway.domain.json_access import as_list, as_object
from gateway.openapi.document.plain_text import plain_text
from gateway.openapi.document.reference_kinds import ANY, LITERAL, kind_of_member

_TEXTS = frozenset(("title", "summary", "description"))


class PlainDetails:
    """The parts of one document with plain descriptions; equal descriptions are read once."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def convert(self, value: object, kind: str = ANY) -> object:
        """Return a value of this kind with plain descriptions; parts without any stay the same objects."""
        if kind == LITERAL:
            return value
        items = as_list(value)
        if items is not None:
            return self._changed_items(items, kind)
        members = as_object(value)
        return value if members is None else self._changed_members(members, kind)

    def _changed_items(self, items: Sequence[object], kind: str) -> Sequence[object]:
        changed = [self.convert(item, kind) for item in items]
        return changed if any(new is not old for new, old in zip(changed, items, strict=True)) else items

    def _changed_members(self, members: Mapping[str, object], kind: str) -> Mapping[str, object]:
        has_texts = not kind.startswith("map:")
        changed: dict[str, object] = {}
        for key, part in members.items():
            if isinstance(part, str):
                new: object = self._plain(part) if has_texts and key in _TEXTS else part
            else:
                new = self.convert(part, kind_of_member(kind, key))
            if new is not part:
                changed[key] = new
        return {**members, **changed} if changed else members

    def _plain(self, text: str) -> str:
        if text not in self._texts:
            plain = plain_text(text)
            self._texts[text] = text if plain == text.strip() else plain
        return self._texts[text]


def kind_at(tokens: Sequence[str]) -> str:
    """Return the kind of the value at a pointer of a document, as far as objects determine it."""
    kind = "document"
    for token in tokens:
        kind = kind if token.isdecimal() and not kind.startswith("map:") else kind_of_member(kind, token)
    return kind
