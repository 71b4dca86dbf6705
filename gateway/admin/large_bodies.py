"""Large request bodies: the document or archive is extracted as JSON bytes, and only the small rest is decoded.

One scan by `msgspec` finds the member without building its values. The worker that compiles the document checks the
member by the same rules as every other body (`gateway.openapi.worker`).
"""

import re
from typing import Any, TypeVar, cast

import msgspec

from gateway.admin.limits import MAX_REST_BYTES, SEARCHED_BYTES
from gateway.domain.json_text import load_json, refuse_at
from gateway.errors import DocumentTooLarge, Fault, InvalidBody

_ABSENT = msgspec.Raw(b"")
_ERROR_POSITION = re.compile(r" \(byte (\d+)\)$")

M = TypeVar("M")


class _Members(msgspec.Struct):
    """The members of a body that may be large; the others are skipped."""

    document: msgspec.Raw = _ABSENT
    archive: msgspec.Raw = _ABSENT


class _Archive(msgspec.Struct):
    """The only member of an archive object that may be large."""

    base64: msgspec.Raw = _ABSENT


def load_large(raw: bytes) -> object:
    """Return the value of a body above `MAX_REST_BYTES` bytes, with its document or base64 as JSON bytes.

    Raises:
        InvalidBody: the body is not a JSON object, or violates a rule of `load_json` outside the extracted member.
        DocumentTooLarge: the body has more than `MAX_REST_BYTES` bytes beside the member.
    """
    members = _scan(raw, _Members)
    member, archive = bytes(members.document), bytes(members.archive)
    is_archive = not member.startswith((b"{", b'"')) and archive.startswith(b"{")
    if is_archive:
        member = bytes(_scan(archive, _Archive).base64)
    if len(raw) - len(member) > MAX_REST_BYTES:
        raise DocumentTooLarge(f"the body has more than {MAX_REST_BYTES} bytes beside its document")
    start = _find(raw, member)
    if len(member) <= MAX_REST_BYTES and raw.find(member, start + 1) >= 0:
        return load_json(raw)  # ambiguous, so the body is decoded completely; it has at most 2 MiB
    content = cast("dict[str, Any]", load_json(b"".join([raw[:start], b"null", raw[start + len(member) :]])))
    if is_archive:
        content["archive"]["base64"] = member
    else:
        content["document"] = member
    return content


def _scan(raw: bytes, shape: type[M]) -> M:
    try:
        return msgspec.json.decode(raw, type=shape)
    except msgspec.ValidationError:
        raise InvalidBody(
            "the body must be a JSON object", faults=[Fault(pointer="", reason="must be an object")]
        ) from None
    except RecursionError:
        refuse_at("is nested too deeply", raw, 0)
    except msgspec.DecodeError as error:
        if found := _ERROR_POSITION.search(str(error)):
            refuse_at(_ERROR_POSITION.sub("", str(error)), raw, int(found[1]))
        refuse_at("the text is truncated, or a string has an unpaired surrogate", raw, len(raw))


def _find(raw: bytes, member: bytes) -> int:
    """Return the index of the member in the body.

    Only the beginning of the member is searched, because `bytes.find` first preprocesses its whole argument.
    """
    start = raw.find(member[:SEARCHED_BYTES])
    while not raw.startswith(member, start):
        start = raw.find(member[:SEARCHED_BYTES], start + 1)
    return start
