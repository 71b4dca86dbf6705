"""What the query tools may speak of: sources that are exposed to them, and the operations seen there."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.domain.identifiers import SourceId
from gateway.domain.tools import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class QueriedSource:
    """A source that the query tools show, and the version of its document that is active."""

    id: SourceId
    name: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Queried:
    """What one profile sees of such a source: its operations by identity (`METHOD path`).

    `is_whole` says that nothing was left out, so that the rest of the document may be shown as well.
    """

    source: QueriedSource
    tools: Mapping[str, Tool]
    is_whole: bool
