"""Conditional requests (RFC 9110, 13.1): the validators of a complete response, and their use in the next request."""

from collections.abc import Iterator

from gateway.domain.updates.watches import Sighting
from gateway.upstream.client import FullResponse
from gateway.upstream.limits import MAX_VALIDATOR_LENGTH
from gateway.upstream.serialize.header_checks import is_header_value

NOT_MODIFIED = 304


def condition_headers(seen: Sighting) -> Iterator[tuple[str, str]]:
    """Yield the headers that request the body only if it changed since the last complete response."""
    if seen.digest is not None and seen.etag is not None:
        yield "If-None-Match", seen.etag
    if seen.digest is not None and seen.last_modified is not None:
        yield "If-Modified-Since", seen.last_modified


def validator_of(response: FullResponse, name: str) -> str | None:
    """Return the value of `etag` or `last-modified`; None if it is missing or cannot be sent."""
    found = next((value for key, value in response.headers if key.lower() == name), None)
    if not found or len(found) > MAX_VALIDATOR_LENGTH or not is_header_value(found):
        return None
    return found
