"""Scope of the query tools: the sources exposed to them, and the visible operations of each."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.domain.identifiers import SourceId
from gateway.domain.tools import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class QueriedSource:
    """A source exposed to the query tools, and the active version of its document."""

    id: SourceId
    name: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Queried:
    """A source's operations that one profile sees, by identity (`METHOD path`).

    `is_whole` is True if no operation is left out, so that the rest of the document may be shown as well.
    """

    source: QueriedSource
    tools: Mapping[str, Tool]
    is_whole: bool
