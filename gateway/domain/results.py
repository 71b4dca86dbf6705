"""What handlers answer, in the protocol's own shapes but of no revision in particular."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal


class _Absent(Enum):
    ABSENT = "absent"


ABSENT: Final = _Absent.ABSENT
"""Stands for structured content that there is none of; None is a value."""

Absent = Literal[_Absent.ABSENT]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a tool answers: content blocks as the protocol writes them, and the same as one JSON value."""

    content: Sequence[Mapping[str, object]] = ()
    structured: object | Absent = ABSENT
    is_error: bool = False
    meta: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What reading a resource answers: `{"uri", "mimeType", "text" | "blob"}` each."""

    contents: Sequence[Mapping[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """What getting a prompt answers: `{"role", "content"}` each."""

    messages: Sequence[Mapping[str, object]]
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completions:
    """What completing a value answers: at most 100 values, and how many there are in all where that is known."""

    values: tuple[str, ...]
    total: int | None = None
    has_more: bool = False
