"""Status and selected headers of an upstream's response in its result (decision 53).

The result contains them in `_meta["gateway/upstream"]`, and as text if the response has no body. A response of status
200 without such headers adds nothing, so most results are unchanged.
"""

from http import HTTPStatus

import orjson

from gateway.calls.limits import MAX_HEAD_LENGTH, MAX_HEADER_LENGTH
from gateway.domain.http.requests import UpstreamResponse

META = "gateway/upstream"

_OK, _CREATED, _ACCEPTED = 200, 201, 202
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_LOCATION = "location"
_BODY_END = b'],"structuredContent":'
_CONTENT_END = b'],"isError":'


def status_line(status: int) -> str:
    """Return the status with its phrase."""
    return f"HTTP {status} {_PHRASES.get(status, '')}".rstrip()


def shown_headers(response: UpstreamResponse) -> dict[str, str]:
    """Return the selected headers, each cut to 1,024 characters, all together to about 8 kB."""
    room = MAX_HEAD_LENGTH
    found: dict[str, str] = {}
    for name, value in response.headers:
        found[name] = value[: min(MAX_HEADER_LENGTH, room)]  # guard: shown-headers-bounded
        room -= len(found[name])
    return found


def describe_head(response: UpstreamResponse) -> str:
    """Return status and headers as text, for a result without a body."""
    lines = [f"{_title(name)}: {value}" for name, value in shown_headers(response).items()]
    return "\n".join([status_line(response.status), *lines])


def add_head(members: bytes, response: UpstreamResponse) -> bytes:
    """Add status and headers to the members of a result without `_meta`; they are unchanged for a plain 200.

    After 201 and 202, a text block contains the location, because models do not read `_meta`.
    """
    if response.status == _OK and not response.headers:
        return members
    headers = shown_headers(response)
    if response.body and response.status in {_CREATED, _ACCEPTED} and _LOCATION in headers:
        members = append_text(members, f"{status_line(response.status)}\nLocation: {headers[_LOCATION]}")
    return b"".join((members, b',"_meta":', orjson.dumps({META: head_meta(response.status, headers)})))


def head_meta(status: int, headers: dict[str, str]) -> dict[str, object]:
    """Return the member of `_meta`."""
    meta: dict[str, object] = {"status": status}
    return {**meta, "headers": headers} if headers else meta


def append_text(members: bytes, text: str) -> bytes:
    """Append a text block. Quotes inside strings are escaped, so the first match is the end of the blocks."""
    at = members.find(_BODY_END)
    at = members.rfind(_CONTENT_END) if at < 0 else at
    printable = text.encode("utf-8", "replace").decode()
    block = b',{"type":"text","text":' + orjson.dumps(printable) + b"}"
    return members[:at] + block + members[at:]


def _title(name: str) -> str:
    return "ETag" if name == "etag" else name.title()
