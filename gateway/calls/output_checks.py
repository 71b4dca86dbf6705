"""Checks of handler results: the form that the protocol requires, the size, and the tool's output schema."""

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from gateway.calls import result_rendering
from gateway.calls.arguments.costly_validation import CostlyValidation
from gateway.calls.limits import ITEM_BYTES, MAX_COMPLETION_LENGTH, MAX_RESULT_BYTES, MAX_TEXT_BYTES
from gateway.calls.result_plan import WHOLE_START, read_result, start_of_text, structure_of
from gateway.definitions.contract.contents import validate_content, validate_contents, validate_messages
from gateway.definitions.json_schema.validator import DeferredCheck, Validator
from gateway.domain.fairness.large_work import run_large
from gateway.domain.fairness.limits import MAX_INLINE_BYTES
from gateway.domain.http.requests import UpstreamResponse
from gateway.domain.identifiers import TenantId
from gateway.domain.json_text import decode_json
from gateway.domain.refusals import OutputInvalid
from gateway.domain.results import ABSENT, Completions, Contents, Messages, Result
from gateway.errors import BadInput, Fault, HandlerFailed, LimitExceeded, Unavailable
from gateway.handlers.binding import BoundPrompt, BoundResource
from gateway.handlers.limits import MAX_COMPLETIONS

_INVALID_FORM = "the handler's result does not have the form that the protocol requires"
_NO_STRUCTURE = "the result has no structured content, which the tool's output schema promises"
_INLINE = 1024 * 1024
"""Bytes above which a result without structured content is not decoded."""
_STRUCTURED = b',"structuredContent":'
_IS_ERROR = b',"isError":'
_DONE = _IS_ERROR + b"false"
_SPACED_MEMBERS = {_STRUCTURED: b', "structuredContent":', _IS_ERROR: b', "isError":'}


def encode(result: Result) -> tuple[bytes, bytes]:
    """Return the members of a tool's result as JSON, and its structured content (empty bytes if there is none).

    The members are the content, the structured content, `isError`, and `_meta` if present. Protocol and admin API find
    structured content and `isError` by their exact bytes. So members of these names inside the content or `_meta` are
    written with a space.

    Raises:
        HandlerFailed: the result does not have the form that the protocol requires, or is too large.
    """
    _check_members(result)
    has_structure = result.structured is not ABSENT and result.structured is not None
    structured = _json(result.structured) if has_structure else b""
    content = _with_spaced_members(_json(_blocks(result, structured)))
    members = [b'"content":', content]
    if structured:
        members += (_STRUCTURED, structured)
    members += (_IS_ERROR, b"true" if result.is_error else b"false")
    if result.meta:
        members += (b',"_meta":', _with_spaced_members(_json(dict(result.meta))))
    return _limit_size(b"".join(members)), structured


def estimate_size(result: Result) -> int:
    """Return about the size of a result as JSON; of a large one, any size above `MAX_INLINE_BYTES`."""
    pending: list[object] = [result.content, result.structured, result.meta]
    size = 0
    while pending and size <= MAX_INLINE_BYTES:
        value = pending.pop()
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, dict):  # an abstract class first would cost 1 µs for each value
            members = cast("dict[object, object]", value)
            size += ITEM_BYTES * len(members)
            pending += members.values()
        elif isinstance(value, list | tuple):
            items = cast("Sequence[object]", value)
            size += ITEM_BYTES * len(items)
            pending += items
        elif isinstance(value, msgspec.Raw):
            size += len(bytes(value))
        elif isinstance(value, Mapping):
            pending.append(dict(cast("Mapping[object, object]", value)))
    return size


class ResultChecks:
    """Checks results against the output schema of their tool."""

    def __init__(self, checks: CostlyValidation) -> None:
        self._checks = checks

    async def encode_checked(self, tenant: TenantId, output: Validator | None, result: Result) -> bytes:
        """Return the members of a tool's result, checked against its output schema; see `encode`.

        Raises:
            HandlerFailed, ResultBusy: the result is not returned.
            OutputInvalid: as for `check_structured`; `OutputRejected` contains the content blocks of the result.
        """
        members, structured = await run_large(tenant, estimate_size(result), encode, result)
        if output is None or result.is_error:
            return members
        try:
            await self.check_structured(tenant, output, structured)
        except OutputInvalid as error:
            if estimate_size(result) > MAX_INLINE_BYTES:
                raise
            blocks = _with_spaced_members(_json(list(result.content)))[1:-1]
            if 0 < len(blocks) <= MAX_TEXT_BYTES:
                raise result_rendering.OutputRejected(error, b"," + blocks) from None
            raise
        return members

    async def check_structured(self, tenant: TenantId, output: Validator, structured: bytes) -> None:
        """Check structured content, given as JSON.

        Raises:
            OutputInvalid: the content does not match the output schema, or cannot be checked.
        """
        if not structured:
            raise OutputInvalid(_NO_STRUCTURE)
        found = await run_large(tenant, len(structured), output.check_text, structured)
        await self._require_valid(tenant, found)

    async def _require_valid(self, tenant: TenantId, found: tuple[Fault, ...] | DeferredCheck) -> None:
        try:
            faults = await self._checks.finish(tenant, found) if isinstance(found, DeferredCheck) else found
        except (LimitExceeded, Unavailable) as error:  # the handler has run, so this is not a refusal
            raise OutputInvalid(
                f"the tool has run, but its result was not checked against its output schema: {error.message}"
            ) from None
        if faults:
            raise OutputInvalid("the result does not match the tool's output schema", faults=faults)

    async def check_upstream_result(
        self, tenant: TenantId, output: Validator, members: bytes, response: UpstreamResponse
    ) -> bytes:
        """Check the members of an upstream's result against the output schema, and return them.

        A response without a body counts as `{}`. On a violation, the result becomes an error without structured
        content, whose text begins with the fact that the call was done; the upstream's text remains in it. Of a large
        result only the start of its text remains: an error is not summarised.
        """
        status = response.status
        if members.startswith(WHOLE_START):
            return await self._check_whole(tenant, output, members, status)
        if len(members) > _INLINE and _STRUCTURED not in members:  # guard: unstructured-result-cut
            start = start_of_text(members, MAX_TEXT_BYTES)
            return _violation(status, OutputInvalid(_NO_STRUCTURE), [msgspec.Raw(start)] if start else [])
        if not response.body:
            members = members.replace(_DONE, _STRUCTURED + b"{}" + _DONE, 1)
        result = read_result(members)
        if result.is_error:
            return members
        try:
            await self._check_encoded(tenant, output, bytes(result.structured))
        except OutputInvalid as error:
            return _violation(status, error, result.content, bytes(result.meta))
        return members

    async def _check_encoded(self, tenant: TenantId, output: Validator, structured: bytes) -> None:
        try:
            await self.check_structured(tenant, output, structured)
        except msgspec.MsgspecError:
            raise OutputInvalid("the result has numbers that cannot be checked") from None

    async def _check_whole(self, tenant: TenantId, output: Validator, members: bytes, status: int) -> bytes:
        """Check a result that will be summarised; on a violation, the error result contains the start of its JSON."""
        structured = structure_of(members)
        try:
            await self._check_encoded(tenant, output, structured)
        except OutputInvalid as error:
            shown = structured[:MAX_TEXT_BYTES].decode("utf-8", "replace")
            return _violation(status, error, [{"type": "text", "text": shown}])
        return members


def _violation(status: int, error: OutputInvalid, content: Sequence[object], encoded_meta: bytes = b"{}") -> bytes:
    """The members of an error result: that the call was done, the violation, and the upstream's content."""
    summary = f"the upstream answered {status}: the call was done; {error.message}"
    detail = "\n".join((summary, *(f"{fault.pointer or '/'}: {fault.reason}" for fault in error.faults)))
    blocks = _with_spaced_members(_json([{"type": "text", "text": detail}, *content]))
    meta: dict[str, object] = decode_json(encoded_meta or b"{}")
    encoded = _json({**meta, "gateway/error": {"code": error.code}})
    return b'"content":' + blocks + b',"isError":true,"_meta":' + encoded


async def check_contents(contents: Contents, bound: BoundResource) -> tuple[Contents, int]:
    """Return the contents of a resource in the protocol's form, and their size in bytes; large ones use a thread.

    Raises:
        HandlerFailed: the value does not have that form, or is too large.
    """
    return await run_large(bound.tenant, _text_length(contents.contents), _check_contents, contents, bound)


def _text_length(contents: Sequence[object]) -> int:
    return sum(
        len(value)
        for item in contents
        if isinstance(item, Mapping)
        for value in cast("Mapping[str, object]", item).values()
        if isinstance(value, str)
    )


def _check_contents(contents: Contents, bound: BoundResource) -> tuple[Contents, int]:
    try:
        checked = validate_contents(list(contents.contents), uri=bound.uri, mime_type=bound.mime_type)
    except BadInput as error:
        raise _form_error(error) from None
    return Contents(contents=checked), len(_limit_size(_json(checked)))


def check_messages(messages: Messages, bound: BoundPrompt) -> tuple[Messages, int]:
    """Return the messages of a prompt in the protocol's form, and their size in bytes.

    Raises:
        HandlerFailed: the value does not have that form, or is too large.
    """
    try:
        checked = validate_messages(list(messages.messages))
    except BadInput as error:
        raise _form_error(error) from None
    description = messages.description or bound.description
    if not isinstance(cast("object", description), str | None):
        raise HandlerFailed(f"{_INVALID_FORM}: the description is not a string")
    _limit_size(_json(description))
    return Messages(messages=checked, description=description), len(_limit_size(_json(checked)))


def check_completions(found: Completions) -> Completions:
    """Return at most a hundred values of at most 4096 characters; `has_more` is set if values were dropped.

    Raises:
        HandlerFailed: a value is not a string or not encodable as JSON, or the total is not an integer.
    """
    is_counted = isinstance(cast("object", found.total), int | None)
    if not is_counted or not all(isinstance(cast("object", value), str) for value in found.values):
        raise HandlerFailed(f"{_INVALID_FORM}: values must be strings, and their total a number")
    shown = tuple(value[:MAX_COMPLETION_LENGTH] for value in found.values[:MAX_COMPLETIONS])
    _json(shown)
    has_more = found.has_more or len(found.values) > MAX_COMPLETIONS
    total = len(found.values) if found.total is None and not found.has_more else found.total
    return Completions(values=shown, total=total, has_more=has_more)


def _check_members(result: Result) -> None:
    """Refuse members of other types than declared: Python does not enforce the annotations of a handler."""
    if not isinstance(cast("object", result.is_error), bool):
        raise HandlerFailed(f"{_INVALID_FORM}: isError must be true or false")
    if not isinstance(cast("object", result.meta), Mapping | None):
        raise HandlerFailed(f"{_INVALID_FORM}: _meta must be an object")


def _blocks(result: Result, structured: bytes) -> Sequence[Mapping[str, object]]:
    if not result.content:
        is_null = result.structured is None
        text = structured.decode() if structured else "null"
        return ({"type": "text", "text": text},) if structured or is_null else ()
    try:
        return validate_content(result.content)
    except BadInput as error:
        raise _form_error(error) from None


def _json(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError):
        raise HandlerFailed("the handler's result is not JSON") from None


def _with_spaced_members(encoded: bytes) -> bytes:
    """Write members named in `_SPACED_MEMBERS` with a space. Quotes inside strings are escaped, so strings do not
    match.
    """
    for member, spaced in _SPACED_MEMBERS.items():
        if member in encoded:
            encoded = encoded.replace(member, spaced)
    return encoded


def _limit_size(encoded: bytes) -> bytes:
    if len(encoded) > MAX_RESULT_BYTES:  # guard: answer-size
        raise HandlerFailed(f"the handler's result is larger than {MAX_RESULT_BYTES} bytes")
    return encoded


def _form_error(error: BadInput) -> HandlerFailed:
    return HandlerFailed(f"{_INVALID_FORM}: {error.message}")
