"""Scope of the query tools: the sources exposed to them, and the visible operations of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from gateway.domain.identifiers import SourceId
from gateway.domain.listed.names import UNCHANGED, ListedNames
from gateway.domain.tools import Tool


class QueriedKind(Enum):
    """The kinds of sources of the query tools, which decide which of the tools return a source."""

    DOCUMENT = auto()
    """A document that is exposed to the query tools."""

    LIVE = auto()
    """A live source that is exposed to the query tools."""

    LISTED = auto()
    """Operations that are listed as tools with shortened inputs, for the tool that returns details."""

    FOUND = auto()
    """Listed tools beside the exposed sources, for the tools that search, return details and call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueriedSource:
    """A source of the query tools, and the active version of its document; only `DOCUMENT` has a document."""

    id: SourceId
    name: str
    version: int
    kind: QueriedKind = QueriedKind.DOCUMENT


OWN_TOOLS: Final = QueriedSource(id=SourceId("own"), name="own tools", version=0, kind=QueriedKind.FOUND)
"""The tenant's own tools; no source has this name, because names of sources have no spaces."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Queried:
    """The operations of a source that one profile permits, by identity: `METHOD path`, or `TOOL name` of a tool.

    `is_whole` is True if the profile hides no operation; then the other parts of the document may be returned as well.
    """

    source: QueriedSource
    tools: Mapping[str, Tool]
    is_whole: bool
    names: ListedNames = UNCHANGED
