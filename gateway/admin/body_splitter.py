"""The child process that separates the document from a large request body: `python -I -m gateway.admin.body_splitter`.

Parsing such a body in any thread would hold the GIL for longer than other requests may wait. The same JSON rules apply
as to every other body.
"""

import json
import sys
from collections.abc import Iterator
from typing import cast

from gateway.errors import DocumentTooLarge, Fault, InvalidBody
from gateway.openapi.document.document import MOST_NODES
from gateway.openapi.worker import serve
from gateway.openapi.worker_messages import Message, Rest, Task, send_document
from gateway.web.bodies import load_json, refuse_many_values

LARGEST_REST = 1024 * 1024
"""Maximum bytes of a body's other fields, encoded as JSON without the document."""

_MOST_VALUES = 2 * MOST_NODES + LARGEST_REST
"""Maximum values in a body; no acceptable body has more. Parsing ten million empty objects took 6 s and 1 GB."""


def main() -> None:
    """Split one body."""
    serve(sys.stdin.buffer, sys.stdout.buffer, split)


def split(_: Task, body: bytes) -> Iterator[Message]:
    """Yield the other fields of the body, then the document or archive.

    Raises:
        InvalidBody: the body is not a JSON object.
        DocumentTooLarge: the body contains too many values, or its other fields are too large.
    """
    refuse_many_values(body, values=_MOST_VALUES, containers=_MOST_VALUES)
    content = load_json(body)
    if not isinstance(content, dict):
        raise InvalidBody("the body must be a JSON object", faults=[Fault(pointer="", reason="must be an object")])
    fields = cast("dict[str, object]", content)
    place, document = _take(fields)
    rest = json.dumps(fields).encode()
    if len(rest) > LARGEST_REST:
        raise DocumentTooLarge(f"the body has more than {LARGEST_REST} bytes beside its document")
    yield Rest(fields=rest, place=place)
    yield from send_document(document)


def _take(fields: dict[str, object]) -> tuple[tuple[str, ...], bytes]:
    """Replace the document or archive by null if it has an accepted form; return its path and its bytes."""
    document = fields.get("document")
    if isinstance(document, str | dict):
        fields["document"] = None
        return ("document",), _encode(cast("object", document))
    archive = fields.get("archive")
    if isinstance(archive, dict):
        holder = cast("dict[str, object]", archive)
        text = holder.get("base64")
        if isinstance(text, str):
            holder["base64"] = None
            return ("archive", "base64"), _encode(text)
    return (), b""


def _encode(value: object) -> bytes:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode()


if __name__ == "__main__":
    main()
