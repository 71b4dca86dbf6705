"""Reads of stored results: the tool `read_result`, and resources under the URI of a result (decision 60).

A result is found by its id and its owner: subject, profile and access rules of the call. Results of other owners, and
results stored before a change of the rules, are reported as missing.
"""

import hashlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, cast
from urllib.parse import parse_qsl

import msgspec

from gateway.definitions.large_results.element_conditions import ElementCondition, Scalar
from gateway.definitions.large_results.limits import (
    MAX_CONDITION_POINTER_LENGTH,
    MAX_LIMIT,
    MAX_OFFSET,
    MAX_RESULT_POINTER_LENGTH,
    MAX_SOUGHT_LENGTH,
)
from gateway.definitions.large_results.pages import PAGE, PageHead, PartRequest
from gateway.definitions.large_results.read_result import PARAMETERS, READ_DEFINITION, READ_RESULT
from gateway.definitions.projection import is_pointer
from gateway.domain.calls.limits import MAX_STORED_BYTES
from gateway.domain.fairness.large_work import run_large
from gateway.domain.identifiers import TenantId
from gateway.domain.results import RESULT_SCHEME, Contents, Result, StoredResult
from gateway.errors import ArgumentsInvalid, Fault, HandlerFailed, NotFound
from gateway.handlers.interfaces import Call, Prepared
from gateway.handlers.limits import MAX_SHALLOW_LEVELS, MAX_WHOLE_BYTES, MAX_WHOLE_JSON_BYTES
from gateway.handlers.local_handler import HandlerSubject, build_prepared_call
from gateway.handlers.previews.requests import escape
from gateway.handlers.response_body.result_processes import ResultProcesses
from gateway.upstream.body_room import BodyRoom

DEFAULT_ROOM: Final = 64 * 1024
"""Page size in bytes in profiles without summaries, where truncated results can be read in parts."""

_PREFIX: Final = f"{RESULT_SCHEME}://"
_OCTET_STREAM: Final = "application/octet-stream"
_JSON: Final = "application/json"
_COSTLY_FACTOR: Final = 32
"""Cost of a page with conditions or a deeper pointer, relative to a plain page of the same result."""
_SHORT_ESCAPES: Final = b'"\\\b\f\n\r\t'
_LONG_ESCAPES: Final = bytes(byte for byte in range(32) if byte not in _SHORT_ESCAPES)
_RESULT_MISSING: Final = (
    "the result has expired, made room for newer results, or does not exist; results end when the profile or the rules "
    "for the caller change. Call the tool again."
)


class ResultStore(Protocol):
    """The stored results of all tenants."""

    async def read(self, tenant: TenantId, owner: str, uri: str) -> StoredResult | None:
        """Return the stored result of this owner; None if there is none."""
        ...


class _NoResults:
    """The store of a process without Redis: it is empty."""

    async def read(self, tenant: TenantId, owner: str, uri: str) -> StoredResult | None:
        del tenant, owner, uri
        return None


NO_RESULTS: Final = _NoResults()


class ResultReader:
    """Reads stored results. Each has room like the large body of a response, until its call has ended."""

    def __init__(self, store: ResultStore, rooms: BodyRoom, processes: ResultProcesses) -> None:
        self._store = store
        self._rooms = rooms
        self._processes = processes

    async def read_whole(self, call: Call, uri: str) -> Mapping[str, object]:
        """Return a result of the caller as the content of a resource.

        Raises:
            NotFound: the caller has no such result, or the result has expired.
            HandlerFailed: the result is too large to be returned whole.
            ResultBusy: too many large results are in work.
        """
        found = await self._read(call, uri)
        return await run_large(call.principal.tenant, len(found.body), _content, uri, found)

    async def _read(self, call: Call, uri: str) -> StoredResult:
        room = self._rooms.open(call.principal.tenant, call)
        await room.take(MAX_STORED_BYTES)  # guard: result-reads-bounded
        found = await self._store.read(call.principal.tenant, call.result_owner, uri)
        if found is None:
            raise NotFound(_RESULT_MISSING)
        room.shrink(len(found.body))
        return found

    async def read_page(self, call: Call, uri: str, request: PartRequest) -> bytes:
        """Return one page of a result of the caller as a JSON object.

        Raises:
            NotFound: the caller has no such result, or the result has expired.
            ArgumentsInvalid: the result has no such part.
            HandlerFailed: the result is binary.
            ResultBusy: too many large results are in work.
        """
        room = call.summary_threshold or DEFAULT_ROOM
        found = await self._read(call, uri)
        is_shallow = not request.where and request.pointer.count("/") <= MAX_SHALLOW_LEVELS
        weight = len(found.body) * (1 if is_shallow else _COSTLY_FACTOR)
        head = PageHead(request, room)
        return await self._processes.run(call.principal.tenant, PAGE, head, found.body, weight=weight)


class ReadResultHandler:
    """Runs the tool `read_result`."""

    def __init__(self, reader: ResultReader) -> None:
        self._reader = reader
        self._subject = HandlerSubject(name=READ_RESULT, definition=READ_DEFINITION)

    def settle(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Return the arguments without nulls, which clients send for absent values."""
        return {name: value for name, value in arguments.items() if value is not None}

    def prepare(self, arguments: Mapping[str, object]) -> Prepared:
        """Return the call for these arguments."""
        return build_prepared_call(self._subject, arguments)

    async def preview(self, prepared: Prepared) -> str:
        """Show the name and the arguments."""
        return escape(prepared.summary)

    async def run(self, prepared: Prepared, call: Call, /) -> Result:
        """Read one page.

        Raises:
            GatewayError: see `ResultReader.read_page`.
        """
        arguments = cast("Mapping[str, Any]", prepared.arguments)
        request = PartRequest(
            pointer=_pointer(arguments.get("pointer", ""), "/pointer"),
            offset=int(arguments.get("offset", 0)),
            limit=None if "limit" not in arguments else int(arguments["limit"]),
            where=tuple(_condition(one, index) for index, one in enumerate(arguments.get("where", ()))),
        )
        page = await self._reader.read_page(call, arguments["result"], request)
        return Result(structured=msgspec.Raw(page))


class ResultResource:
    """Reads a stored result; parameters in the URI select one page of it."""

    def __init__(self, reader: ResultReader, uri: str) -> None:
        self._reader = reader
        self._uri = uri

    def settle(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Return the arguments unchanged."""
        return arguments

    def prepare(self, arguments: Mapping[str, object]) -> Prepared:
        """Return the read request; its digest covers the URI."""
        del arguments
        digest = hashlib.blake2b(self._uri.encode("utf-8", "surrogatepass"), digest_size=32).digest()
        return Prepared(digest=digest, named=self._uri)

    async def preview(self, prepared: Prepared) -> str:
        """Show the URI."""
        return prepared.summary

    async def run(self, prepared: Prepared, call: Call, /) -> Contents:
        """Read the result, or one page of it.

        Raises:
            NotFound: the caller has no such result, or the result has expired.
            GatewayError: see `ResultReader.read_page`.
        """
        del prepared
        uri, has_query, query = self._uri.partition("?")
        if has_query:
            page = await self._reader.read_page(call, uri, request_of_query(query))
            return Contents(contents=({"uri": self._uri, "mimeType": _JSON, "text": page.decode()},))
        return Contents(contents=(await self._reader.read_whole(call, uri),))


def is_result_uri(uri: str) -> bool:
    """True if the URI has the scheme of stored results."""
    return uri.startswith(_PREFIX)


def request_of_query(query: str) -> PartRequest:
    """Return the request that the parameters of a URI describe.

    Raises:
        ArgumentsInvalid: a parameter is unknown, repeated or invalid.
    """
    given = parse_qsl(query, keep_blank_values=True) if query.count("&") < len(PARAMETERS) else [("", "")]
    values = dict(given)
    if len(values) < len(given) or not values.keys() <= set(PARAMETERS):
        raise _invalid("", f"parameters of the URI are {', '.join(PARAMETERS)}, each once")
    where: tuple[ElementCondition, ...] = ()
    if "equals" in values or "contains" in values:
        condition: dict[str, object] = {"pointer": values.get("where", "")}
        condition |= {name: values[name] for name in ("contains",) if name in values}
        where = (_condition(condition, 0, equals=_spellings(values["equals"]) if "equals" in values else ()),)
    elif "where" in values:
        raise _invalid("/where", "it needs equals or contains")
    return PartRequest(
        pointer=_pointer(values.get("pointer", ""), "/pointer"),
        offset=_number(values.get("offset", "0"), "/offset", MAX_OFFSET),
        limit=_number(values["limit"], "/limit", MAX_LIMIT) if "limit" in values else None,
        where=where,
    )


def _condition(
    members: Mapping[str, object], index: int, *, equals: Sequence[Scalar] | None = None
) -> ElementCondition:
    location = f"/where/{index}"
    if equals is None:
        equals = (cast("Scalar", members["equals"]),) if "equals" in members else ()
    contains = members.get("contains")
    if contains is not None and len(str(contains)) > MAX_SOUGHT_LENGTH:
        raise _invalid(f"{location}/contains", f"has more than {MAX_SOUGHT_LENGTH} characters")
    return ElementCondition(
        pointer=_pointer(members.get("pointer", ""), f"{location}/pointer", MAX_CONDITION_POINTER_LENGTH),
        equals=tuple(equals),
        contains=None if contains is None else str(contains).casefold(),
    )


def _spellings(text: str) -> Sequence[Scalar]:
    """Return the values that a string in a URI may mean: itself, and the JSON number, boolean or null that it
    spells.
    """
    try:
        value = msgspec.json.decode(text, type=int | float | bool | None)
    except msgspec.MsgspecError:
        return (text,)
    return (text, value)


def _pointer(value: object, location: str, max_length: int = MAX_RESULT_POINTER_LENGTH) -> str:
    text = str(value)
    if not is_pointer(text, max_length=max_length):
        raise _invalid(location, f"must be a JSON Pointer such as /items/7, of at most {max_length} characters")
    return text


def _number(text: str, location: str, maximum: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(maximum)) and int(text) <= maximum):
        raise _invalid(location, f"must be a number up to {maximum}")
    return int(text)


def _content(uri: str, found: StoredResult) -> Mapping[str, object]:
    """Text if the bytes are valid UTF-8, regardless of their declared type; a blob otherwise."""
    body, mime_type = found.body, found.content_type.partition(";")[0].strip() or _OCTET_STREAM
    if len(body) > MAX_WHOLE_BYTES:
        raise _too_large(uri)
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return {"uri": uri, "mimeType": mime_type, "blob": b64encode(body).decode()}
    if size_as_json(body) > MAX_WHOLE_JSON_BYTES:  # guard: whole-result-size
        raise _too_large(uri)
    return {"uri": uri, "mimeType": mime_type, "text": text}


def size_as_json(body: bytes) -> int:
    """Return the bytes of a string as a JSON string, without making it: an escape has two bytes, or six."""
    size = len(body)
    short, long = (size - len(body.translate(None, escaped)) for escaped in (_SHORT_ESCAPES, _LONG_ESCAPES))
    return size + short + 5 * long


def _too_large(uri: str) -> HandlerFailed:
    return HandlerFailed(f"the result is too large for one result; read parts of it: {uri}?pointer=")


def _invalid(pointer: str, reason: str) -> ArgumentsInvalid:
    return ArgumentsInvalid("the part cannot be read", faults=(Fault(pointer=pointer, reason=reason),))
