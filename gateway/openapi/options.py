"""Options of an import, apart from the compiler, which a process that serves never imports."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.domain.sources import OperationRule


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """Options of an import, besides the document.

    `include` and `exclude` choose the operations. `base_url` replaces every server of the document; `document_url` is
    what relative ones are relative to; `known_names` maps identities of earlier versions to the tool names they keep.
    `taken`, the names of other sources, changes nothing here: a clash with them is for the catalog to report.
    """

    include: tuple[OperationRule, ...] = ()
    exclude: tuple[OperationRule, ...] = ()
    base_url: str | None = None
    prefix: str | None = None
    document_url: str | None = None
    known_names: Mapping[str, str] = field(default_factory=dict[str, str])
    taken: frozenset[str] = frozenset()
    output_schemas: bool = False
    """True if tools list an output schema; their results are validated against it."""
    outline: bool = False
    """True if the query tools expose the document."""
    is_listed: bool = True
    """True if its operations are listed as tools."""
