"""Options and form of a document to compile, separate from the compiler, which a serving process never imports."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.domain.sources import FilledParameter, OperationRule


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """Options of an import, besides the document.

    `include` and `exclude` select the operations. `base_url` replaces every server of the document. Relative servers
    are resolved against `document_url`. `known_names` maps operation identities to the tool names of earlier versions,
    which the operations keep. The compiler ignores `taken`, the tool names of other sources.
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
    """True if the operations of the document are listed as tools."""
    parameters: tuple[FilledParameter, ...] = ()
    """Parameters that stored credentials fill; the tools have no arguments for them."""
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentForm:
    """The form in which a document is sent: its text, a JSON value of a request body, or an archive."""

    is_json_value: bool = False
    """The document is an object or a string, an archive is base64 in a string."""
    is_archive: bool = False
    entry: str | None = None
    """The name of an archive's root document if it was given."""
    lists_missing: bool = False
    """True if only the files that an archive references but lacks are requested, without compilation."""


PLAIN = DocumentForm()
