"""Forms of results, one per family (tool, resource, prompt), so that each kind of handler is implemented only once.

The call pipeline checks the results against the protocol, for declared handlers and Python functions alike.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

import msgspec

from gateway.domain.http.requests import UpstreamResponse
from gateway.domain.results import ABSENT, Absent, Contents, Messages, Result
from gateway.errors import HandlerFailed, NotFound, UpstreamError
from gateway.handlers.python.returned_objects import read_contents, read_messages, read_result, refuse
from gateway.handlers.response_body.kinds import is_json
from gateway.handlers.response_body.reading import BYTES, JSON, TEXT, kind_of, read_json, read_text

_FIRST_ERROR = 300
_GONE = frozenset({404, 410})
_Result_co = TypeVar("_Result_co", covariant=True)

Blocks = Sequence[Mapping[str, object]]


class ResultForm(Protocol[_Result_co]):
    """Builds the results of a family."""

    @property
    def uri(self) -> str | None:
        """The URI of the resource that is read; None in other families."""
        ...

    def of_text(self, text: str, *, mime_type: str | None = None, is_error: bool = False) -> _Result_co:
        """Return a result with one text block."""
        ...

    def of_json(self, value: object, *, mime_type: str | None = None, is_error: bool = False) -> _Result_co:
        """Return a result that is one JSON value."""
        ...

    def of_blocks(self, blocks: Blocks, *, structured: object | Absent = ABSENT, is_error: bool = False) -> _Result_co:
        """Return a result with these content blocks, contents or messages."""
        ...

    def of_response(self, response: UpstreamResponse) -> _Result_co:
        """Return the result for an upstream's response.

        Raises:
            HandlerFailed, NotFound, UpstreamError: the family cannot represent the response.
        """
        ...

    def of_failure(self, result: Mapping[str, Any]) -> _Result_co:
        """Return the result for the failure of a called tool.

        Raises:
            HandlerFailed: the family cannot represent a failure.
        """
        ...

    def of_returned(self, returned: object) -> _Result_co:
        """Return the result for a Python function's return value.

        Raises:
            HandlerFailed: functions of the family may not return this type.
        """
        ...

    def of_nothing(self) -> _Result_co:
        """Return the result of a handler that ended without one.

        Raises:
            HandlerFailed: the family requires a result.
        """
        ...


class ToolForm:
    """Results of tools: content blocks, or an upstream's response."""

    uri: str | None = None

    def of_text(self, text: str, *, mime_type: str | None = None, is_error: bool = False) -> UpstreamResponse | Result:
        """Return one block of text."""
        del mime_type
        return Result(content=({"type": "text", "text": text},), is_error=is_error)

    def of_json(
        self, value: object, *, mime_type: str | None = None, is_error: bool = False
    ) -> UpstreamResponse | Result:
        """Return structured content, and the same value as text."""
        del mime_type
        return Result(content=({"type": "text", "text": to_json(value)},), structured=value, is_error=is_error)

    def of_blocks(
        self, blocks: Blocks, *, structured: object | Absent = ABSENT, is_error: bool = False
    ) -> UpstreamResponse | Result:
        """Return a result with the blocks."""
        return Result(content=blocks, structured=structured, is_error=is_error)

    def of_response(self, response: UpstreamResponse) -> UpstreamResponse | Result:
        """Return the response itself; the call pipeline renders it."""
        return response

    def of_failure(self, result: Mapping[str, Any]) -> UpstreamResponse | Result:
        """Return a result with the same failure."""
        return Result(content=result.get("content", ()), is_error=True, meta=result.get("_meta"))

    def of_returned(self, returned: object) -> UpstreamResponse | Result:
        """Accept a result, a string, or a mapping: a result object of the protocol, or one JSON object."""
        if isinstance(returned, Result):
            return returned
        if isinstance(returned, str):
            return self.of_text(returned)
        if isinstance(returned, Mapping):
            members = dict(cast("Mapping[str, object]", returned))
            return read_result(members) or self.of_json(members)
        raise refuse(returned)

    def of_nothing(self) -> UpstreamResponse | Result:
        """Return a result without content."""
        return Result()


@dataclass(frozen=True, slots=True)
class ResourceForm:
    """Results of resources: contents. A content without a URI gets the URI that was read."""

    uri: str
    mime_type: str | None = None

    def of_text(self, text: str, *, mime_type: str | None = None, is_error: bool = False) -> Contents:
        """Return one text content."""
        del is_error
        return self._one({"text": text}, mime_type or self.mime_type)

    def of_json(self, value: object, *, mime_type: str | None = None, is_error: bool = False) -> Contents:
        """Return one text content that is JSON."""
        del is_error
        return self._one({"text": to_json(value)}, mime_type or self.mime_type or JSON)

    def of_blocks(self, blocks: Blocks, *, structured: object | Absent = ABSENT, is_error: bool = False) -> Contents:
        """Return the contents."""
        del structured, is_error
        return Contents(contents=tuple(self._named(block) for block in blocks))

    def of_bytes(self, content: bytes, mime_type: str | None = None) -> Contents:
        """Return one blob."""
        return self._one({"blob": b64encode(content).decode()}, mime_type or self.mime_type)

    def of_response(self, response: UpstreamResponse) -> Contents:
        """Return the body, as text if it is text.

        Raises:
            NotFound: the status is 404 or 410.
            UpstreamError: the status is any other of 300 or above.
        """
        if response.status in _GONE:
            raise NotFound("there is no such resource")
        text = _text_of(response)
        kind = kind_of(response) or self.mime_type
        return (
            self.of_bytes(response.body, kind or BYTES) if text is None else self.of_text(text, mime_type=kind or TEXT)
        )

    def of_failure(self, result: Mapping[str, Any]) -> Contents:
        """Raise HandlerFailed: a resource cannot represent a failure."""
        raise HandlerFailed(_message(result))

    def of_returned(self, returned: object) -> Contents:
        """Accept contents, a string, bytes, or a mapping in the protocol's form."""
        if isinstance(returned, Contents):
            return self.of_blocks(returned.contents)
        if isinstance(returned, str):
            return self.of_text(returned)
        if isinstance(returned, bytes):
            return self.of_bytes(returned)
        if isinstance(returned, Mapping):
            return self.of_blocks(read_contents(cast("Mapping[str, object]", returned)))
        raise refuse(returned)

    def of_nothing(self) -> Contents:
        """Raise HandlerFailed: a resource requires contents."""
        raise HandlerFailed("the handler ended without a result")

    def _named(self, block: Mapping[str, object]) -> Mapping[str, object]:
        """Return the content with the URI that was read. The call pipeline refuses a value that is not a mapping."""
        return {"uri": self.uri, **block} if isinstance(cast("object", block), Mapping) else block

    def _one(self, member: Mapping[str, object], mime_type: str | None) -> Contents:
        kind = {} if mime_type is None else {"mimeType": mime_type}
        return Contents(contents=({"uri": self.uri, **kind, **member},))


@dataclass(frozen=True, slots=True)
class PromptForm:
    """Results of prompts: messages; a single string becomes a message of the user."""

    description: str | None = None
    uri: str | None = None

    def of_text(self, text: str, *, mime_type: str | None = None, is_error: bool = False) -> Messages:
        """Return one message of the user."""
        del mime_type, is_error
        return self.of_blocks(({"role": "user", "content": {"type": "text", "text": text}},))

    def of_json(self, value: object, *, mime_type: str | None = None, is_error: bool = False) -> Messages:
        """Return one message of the user that is JSON."""
        del mime_type, is_error
        return self.of_text(to_json(value))

    def of_blocks(self, blocks: Blocks, *, structured: object | Absent = ABSENT, is_error: bool = False) -> Messages:
        """Return the messages."""
        del structured, is_error
        return Messages(messages=blocks, description=self.description)

    def of_response(self, response: UpstreamResponse) -> Messages:
        """Return the `messages` of a JSON object; otherwise the text of the response as one message.

        Raises:
            HandlerFailed: the response is not text, or not the JSON that its type declares.
            UpstreamError: the status is 300 or above.
        """
        text = _text_of(response)
        if text is None:
            raise HandlerFailed("the upstream's response is not text")
        if is_json(kind_of(response)):
            value = read_json(response)
            members = cast("dict[str, object]", value) if isinstance(value, dict) else {}
            messages = members.get("messages")
            if isinstance(messages, list):
                return self.of_blocks(cast("Blocks", messages))
        return self.of_text(text)

    def of_failure(self, result: Mapping[str, Any]) -> Messages:
        """Raise HandlerFailed: a prompt cannot represent a failure."""
        raise HandlerFailed(_message(result))

    def of_returned(self, returned: object) -> Messages:
        """Accept messages, a string, or a list or mapping in the protocol's form."""
        if isinstance(returned, Messages):
            return returned
        if isinstance(returned, str):
            return self.of_text(returned)
        if isinstance(returned, Mapping | list | tuple):
            return read_messages(cast("Mapping[str, object] | Sequence[object]", returned))
        raise refuse(returned)

    def of_nothing(self) -> Messages:
        """Raise HandlerFailed: a prompt requires messages."""
        raise HandlerFailed("the handler ended without a result")


def to_json(value: object) -> str:
    """Return a value as compact JSON.

    Raises:
        HandlerFailed: the value is not JSON.
    """
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        raise HandlerFailed("the handler's result is not JSON") from None


def _text_of(response: UpstreamResponse) -> str | None:
    if response.status >= _FIRST_ERROR:
        raise UpstreamError(f"The upstream responded with status {response.status}.")
    return read_text(response)


def _message(result: Mapping[str, Any]) -> str:
    """Return the error text of a failed tool."""
    blocks: Sequence[Mapping[str, object]] = result.get("content") or ({},)
    return str(blocks[0].get("text") or "a called tool failed")
