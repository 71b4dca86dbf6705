"""A stored result as a document that is read in parts: JSON by pointers, text like a list of its lines."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from gateway.definitions.large_results.json_parts import compact, has_many_parts, is_container
from gateway.definitions.large_results.limits import MAX_PARTS

JSON_TYPE = "application/json"
TEXT_TYPE = "text/plain"

_LINE = re.compile(rb"[^\n]*\n|[^\n]+\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultDocument:
    """A stored result: a list or object as compact JSON, or any other result as UTF-8 text."""

    body: bytes = field(repr=False)
    is_json: bool

    @property
    def content_type(self) -> str:
        """The MIME type under which the document is stored."""
        return JSON_TYPE if self.is_json else TEXT_TYPE

    def lines(self) -> Iterator[bytes]:
        """Return the lines of a text, with their line ends; a text of more than 500,000 lines is one line."""
        return iter((self.body,)) if self._has_many_lines else (line[0] for line in _LINE.finditer(self.body))

    def count_lines(self) -> int:
        """Return the number of lines that `lines` returns."""
        return 1 if self._has_many_lines else self.body.count(b"\n") + (not self.body.endswith(b"\n"))

    @property
    def _has_many_lines(self) -> bool:
        return self.body.count(b"\n") > MAX_PARTS


def read_document(body: bytes) -> ResultDocument | None:
    """Return the document with these bytes; None if they are binary.

    A JSON string or number is a text, and so is JSON with more than 500,000 commas.
    """
    if is_container(body.lstrip(b" \t\r\n")[:1]) and not has_many_parts(body):
        found = compact(body)
        if found is not None:
            return ResultDocument(body=found, is_json=True)
    try:
        body.decode()
    except UnicodeDecodeError:
        return None
    return ResultDocument(body=body, is_json=False)


def json_of(text: str) -> bytes:
    """Encode a text as a JSON string."""
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")
