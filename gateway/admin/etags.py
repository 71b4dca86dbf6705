"""Entity tags in HTTP headers: ETag, and the preconditions If-Match and If-None-Match (RFC 9110)."""

import re

from gateway.admin.limits import MAX_TAG_LIST_LENGTH
from gateway.catalog.etags import ANY, Expected
from gateway.errors import BadInput

_TAG = r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"'
_TAG_LIST_PATTERN = re.compile(rf"\s*{_TAG}(?:\s*,\s*{_TAG})*\s*")
_TAG_PATTERN = re.compile(_TAG)


def write_tag(tag: str) -> str:
    """Return the value of an ETag header; always a strong tag."""
    return f'"{tag}"'


def read_creates_only(header: str | None) -> bool:
    """True if If-None-Match is `*`, so that the request may only create an object.

    Raises:
        BadInput: the header is not `*`.
    """
    if header is not None and header.strip() != ANY:
        raise BadInput("If-None-Match of a PUT must be *, which only creates")
    return header is not None


def read_expected(header: str | None) -> Expected:
    """Return the versions that an If-Match header accepts; None without the header. A weak tag matches no version.

    Raises:
        BadInput: the header does not have the form of RFC 9110, or is longer than 4096 characters.
    """
    if header is None:
        return None
    if header.strip() == ANY:
        return frozenset({ANY})
    if len(header) > MAX_TAG_LIST_LENGTH or not _TAG_LIST_PATTERN.fullmatch(header):
        raise BadInput('If-Match must be * or a list of entity tags, such as "key_1.2"')
    return frozenset(tag[1:-1] for tag in _TAG_PATTERN.findall(header) if not tag.startswith("W/"))
