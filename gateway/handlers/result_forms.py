"""What the answer of each family is made of: one form per family, so that a kind of handler is written once.

What a form makes is still to be held to the protocol; the stations do that, for declared handlers and code alike.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

import msgspec

from gateway.domain.http.requests import UpstreamAnswer
from gateway.domain.results import ABSENT, Absent, Contents, Messages, Result
from gateway.errors import HandlerFailed, NotFound, UpstreamError
from gateway.handlers.python.returned_objects import read_contents, read_messages, read_result, refuse
from gateway.handlers.response_body.kinds import is_json
from gateway.handlers.response_body.reading import BYTES, JSON, TEXT, kind_of, read_json, read_text

_FIRST_ERROR = 300
_GONE = frozenset({404, 410})
_Answer_co = TypeVar("_Answer_co", covariant=True)

Blocks = Sequence[Mapping[str, object]]


class ResultForm(Protocol[_Answer_co]):
    """How a family makes its answer of what a handler has."""

    @property
    def uri(self) -> str | None:
        """The URI that is read, of a resource."""
        ...

    def of_text(self, text: str, *, mime_type: str | None = None, is_error: bool = False) -> _Answer_co:
        """The answer that is one text."""
        ...

    def of_json(self, value: object, *, mime_type: str | None = None, is_error: bool = False) -> _Answer_co:
        """The answer that is one JSON value."""
        ...

    def of_blocks(self, blocks: Blocks, *, structured: object | Absent = ABSENT, is_error: bool = False) -> _Answer_co:
        """The answer whose content blocks, contents or messages are given."""
        ...

    def of_answer(self, answer: UpstreamAnswer) -> _Answer_co:
        """The answer that an upstream gave.

        Raises:
            UpstreamError: it is one that the family cannot show.
        """
        ...

    def of_failure(self, result: Mapping[str, Any]) -> _Answer_co:
        """The answer when a tool called on the way failed.

        Raises:
            HandlerFailed: the family cannot show a failure.
        """
        ...

    def of_returned(self, returned: object) -> _Answer_co:
        """The answer that a Python function returned.

        Raises:
            HandlerFailed: it returned something that the family's functions may not.
        """
        ...

    def of_nothing(self) -> _Answer_co:
        """The answer when there is none.

        Raises:
            HandlerFailed: the family cannot do without one.
        """
        ...


class ToolForm:
    """A tool answers content blocks, or whatever an upstream said."""

    uri: str | None = None

    def of_text(self, text: str, *, mime_type: str | None = None, is_error: bool = False) -> UpstreamAnswer | Result:
        """One block of text."""
        del mime_type
        return Result(content=({"type": "text", "text": text},), is_error=is_error)

    def of_json(
        self, value: object, *, mime_type: str | None = None, is_error: bool = False
    ) -> UpstreamAnswer | Result:
        """Structured content, and the same as text."""
        del mime_type
        return Result(content=({"type": "text", "text": to_json(value)},), structured=value, is_error=is_error)

    def of_blocks(
        self, blocks: Blocks, *, structured: object | Absent = ABSENT, is_error: bool = False
    ) -> UpstreamAnswer | Result:
        """The blocks."""
        return Result(content=blocks, structured=structured, is_error=is_error)

    def of_answer(self, answer: UpstreamAnswer) -> UpstreamAnswer | Result:
        """The answer itself; its shape is made by the stations."""
        return answer

    def of_failure(self, result: Mapping[str, Any]) -> UpstreamAnswer | Result:
        """The same failure."""
        return Result(content=result.get("content", ()), is_error=True, meta=result.get("_meta"))

    def of_returned(self, returned: object) -> UpstreamAnswer | Result:
        """A result, a text, or a mapping: a result in the protocol's form, or one JSON object."""
        if isinstance(returned, Result):
            return returned
        if isinstance(returned, str):
            return self.of_text(returned)
        if isinstance(returned, Mapping):
            members = dict(cast("Mapping[str, object]", returned))
            return read_result(members) or self.of_json(members)
        raise refuse(returned)

    def of_nothing(self) -> UpstreamAnswer | Result:
        """No content: the work was all there was."""
        return Result()


@dataclass(frozen=True, slots=True)
class ResourceForm:
    """A resource answers contents, each with the URI that was read unless it says another."""

    uri: str
    mime_type: str | None = None

    def of_text(self, text: str, *, mime_type: str | None = None, is_error: bool = False) -> Contents:
        """One text."""
        del is_error
        return self._one({"text": text}, mime_type or self.mime_type)

    def of_json(self, value: object, *, mime_type: str | None = None, is_error: bool = False) -> Contents:
        """One text that is JSON."""
        del is_error
        return self._one({"text": to_json(value)}, mime_type or self.mime_type or JSON)

    def of_blocks(self, blocks: Blocks, *, structured: object | Absent = ABSENT, is_error: bool = False) -> Contents:
        """The contents."""
        del structured, is_error
        return Contents(contents=tuple(self._named(block) for block in blocks))

    def of_bytes(self, content: bytes, mime_type: str | None = None) -> Contents:
        """One blob."""
        return self._one({"blob": b64encode(content).decode()}, mime_type or self.mime_type)

    def of_answer(self, answer: UpstreamAnswer) -> Contents:
        """The body, as text where it is text; an upstream that knows nothing of it makes it not found."""
        if answer.status in _GONE:
            raise NotFound("there is no such resource")
        text = _text_of(answer)
        kind = kind_of(answer) or self.mime_type
        return self.of_bytes(answer.body, kind or BYTES) if text is None else self.of_text(text, mime_type=kind or TEXT)

    def of_failure(self, result: Mapping[str, Any]) -> Contents:
        """None: a resource cannot show a failure."""
        raise HandlerFailed(_said(result))

    def of_returned(self, returned: object) -> Contents:
        """Contents, a text, bytes, or a mapping in the protocol's form."""
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
        """None: reading must show something."""
        raise HandlerFailed("the handler came to its end without an answer")

    def _named(self, block: Mapping[str, object]) -> Mapping[str, object]:
        """The content with the URI that was read; what is no content stays as it is, to be refused by the stations."""
        return {"uri": self.uri, **block} if isinstance(cast("object", block), Mapping) else block

    def _one(self, member: Mapping[str, object], mime_type: str | None) -> Contents:
        kind = {} if mime_type is None else {"mimeType": mime_type}
        return Contents(contents=({"uri": self.uri, **kind, **member},))


@dataclass(frozen=True, slots=True)
class PromptForm:
    """A prompt answers messages; what is one text is said by the user."""

    description: str | None = None
    uri: str | None = None

    def of_text(self, text: str, *, mime_type: str | None = None, is_error: bool = False) -> Messages:
        """One message of the user."""
        del mime_type, is_error
        return self.of_blocks(({"role": "user", "content": {"type": "text", "text": text}},))

    def of_json(self, value: object, *, mime_type: str | None = None, is_error: bool = False) -> Messages:
        """One message of the user that is JSON."""
        del mime_type, is_error
        return self.of_text(to_json(value))

    def of_blocks(self, blocks: Blocks, *, structured: object | Absent = ABSENT, is_error: bool = False) -> Messages:
        """The messages."""
        del structured, is_error
        return Messages(messages=blocks, description=self.description)

    def of_answer(self, answer: UpstreamAnswer) -> Messages:
        """The messages, where a JSON answer is an object that has them; else its text as one message."""
        text = _text_of(answer)
        if text is None:
            raise HandlerFailed("the upstream answered with something that is no text")
        if is_json(kind_of(answer)):
            value = read_json(answer)
            members = cast("dict[str, object]", value) if isinstance(value, dict) else {}
            messages = members.get("messages")
            if isinstance(messages, list):
                return self.of_blocks(cast("Blocks", messages))
        return self.of_text(text)

    def of_failure(self, result: Mapping[str, Any]) -> Messages:
        """None: a prompt cannot show a failure."""
        raise HandlerFailed(_said(result))

    def of_returned(self, returned: object) -> Messages:
        """Messages, a text, or a list or mapping in the protocol's form."""
        if isinstance(returned, Messages):
            return returned
        if isinstance(returned, str):
            return self.of_text(returned)
        if isinstance(returned, Mapping | list | tuple):
            return read_messages(cast("Mapping[str, object] | Sequence[object]", returned))
        raise refuse(returned)

    def of_nothing(self) -> Messages:
        """None: a prompt without messages is none."""
        raise HandlerFailed("the handler came to its end without an answer")


def to_json(value: object) -> str:
    """A value as compact JSON.

    Raises:
        HandlerFailed: it is none.
    """
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        raise HandlerFailed("the handler answered with something that is not JSON") from None


def _text_of(answer: UpstreamAnswer) -> str | None:
    if answer.status >= _FIRST_ERROR:
        raise UpstreamError(f"The upstream answered with status {answer.status}.")
    return read_text(answer)


def _said(result: Mapping[str, Any]) -> str:
    """What a failed tool says of itself."""
    blocks: Sequence[Mapping[str, object]] = result.get("content") or ({},)
    return str(blocks[0].get("text") or "a tool that was called failed")
