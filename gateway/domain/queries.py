"""Scope of the query tools: the sources exposed to them, and the visible operations of each."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.domain.identifiers import SourceId
from gateway.domain.tools import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class QueriedSource:
    """A source exposed to the query tools, and the active version of its document; a live source has no document."""

    id: SourceId
    name: str
    version: int
    is_live: bool = False
    is_listed: bool = False
    """True if its operations are listed as tools; query tools then return only details of tools with shortened
    inputs.
    """


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Queried:
    """The operations of a source that one profile permits, by identity: `METHOD path`, or `TOOL name` of a live source.

    `is_whole` is True if the profile hides no operation; then the other parts of the document may be returned as well.
    """

    source: QueriedSource
    tools: Mapping[str, Tool]
    is_whole: bool
