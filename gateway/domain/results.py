"""Results of handlers in the protocol's shapes, independent of a protocol revision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Literal, cast

from gateway.errors import HandlerFailed


class _Absent(Enum):
    ABSENT = "absent"


RESULT_SCHEME: Final = "gateway+result"
"""The scheme of the URIs of stored results."""
ABSENT: Final = _Absent.ABSENT
"""Marks absent structured content; None would mean the JSON value null."""

Absent = Literal[_Absent.ABSENT]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Result of a tool: content blocks in the protocol's form, and optionally structured content, one JSON value."""

    content: Sequence[Mapping[str, object]] = ()
    structured: object | Absent = ABSENT
    is_error: bool = False
    meta: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Result of reading a resource: a list of `{"uri", "mimeType", "text" | "blob"}`."""

    contents: Sequence[Mapping[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """Result of getting a prompt: a list of `{"role", "content"}`.

    Raises:
        HandlerFailed: a message has the role `system`. Constant messages thus fail where they are declared.
    """

    messages: Sequence[Mapping[str, object]]
    description: str | None = None

    def __post_init__(self) -> None:
        messages = cast("object", self.messages)  # a function may return what its type forbids
        entries = cast("Sequence[object]", messages) if isinstance(messages, list | tuple) else ()
        for index, message in enumerate(entries):
            if isinstance(message, Mapping) and cast("Mapping[str, object]", message).get("role") == "system":
                raise HandlerFailed(
                    "the messages do not have the form that the protocol requires:"
                    f" /messages/{index}/role: must be user or assistant; MCP has no role system: use user"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Completions:
    """Result of completing a value: at most 100 values, and the total number if known."""

    values: tuple[str, ...]
    total: int | None = None
    has_more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResult:
    """A stored result: its content type and its bytes."""

    content_type: str
    body: bytes = field(repr=False)
