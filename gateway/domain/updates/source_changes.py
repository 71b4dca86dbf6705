"""Changes of a source: the semantic differences between its tools and those of another document."""

from dataclasses import dataclass, field
from enum import StrEnum

from gateway.domain.tenancy.policy import Safety


class Impact(StrEnum):
    """Effect of a difference on the agents that use a tool."""

    BREAKING = "breaking"
    """A call that worked may be refused, or have another effect."""
    WIDENING = "widening"
    """Every call that worked still works; more is possible."""
    TEXT = "text"
    """Only text that agents read differs, such as descriptions."""


class DifferenceKind(StrEnum):
    """Kind of a difference; the first three are sensitive."""

    HOST = "host"
    """Another host receives the calls or the client secret."""
    CREDENTIALS = "credentials"
    """The security schemes differ."""
    SAFETY = "safety"
    ROUTE = "route"
    """The method, the path, or the query of the server's URL differs."""
    REQUEST = "request"
    """The same arguments are serialized differently."""
    RESULT = "result"
    SELECTION = "selection"
    """The tags differ; profiles select tools by tags."""
    ARGUMENT_REMOVED = "argument_removed"
    ARGUMENT_REQUIRED = "argument_required"
    ARGUMENT_NARROWED = "argument_narrowed"
    ARGUMENT_ADDED = "argument_added"
    ARGUMENT_WIDENED = "argument_widened"
    DOCUMENTATION = "documentation"
    """An addition to the output of the query tools."""
    TEXT = "text"


SENSITIVE = frozenset({DifferenceKind.HOST, DifferenceKind.CREDENTIALS, DifferenceKind.SAFETY})
"""Differences that may change the receiver of a call, the secret sent to it, or the required consent."""


class FindingKind(StrEnum):
    """Kind of a suspicious text."""

    INSTRUCTIONS = "injected-instructions"
    INVISIBLE = "invisible-characters"
    COMMENT = "html-comment"
    SECRET = "secret"  # noqa: S105  # a kind
    URL = "new-url"
    LETTERS = "look-alike-letters"
    NAME = "look-alike-name"
    MORE = "more"
    """Represents further findings, which are not listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference; `pointer` leads into the tool, its `request`, or the output of the query tools.

    `old` and `new` are excerpts with invisible characters escaped; None for an absent value.
    """

    kind: DifferenceKind
    impact: Impact
    pointer: str
    old: str | None = None
    new: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitiveChange:
    """The same sensitive difference of several tools: `tools` is their number, `named` the first of them."""

    kind: DifferenceKind
    old: str | None
    new: str | None
    tools: int
    named: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFinding:
    """A suspicious text: of the tool `tool` if it is known, at a pointer into the tool or into the document.

    `pattern` is the name of a pattern; `excerpt` has invisible characters escaped.
    """

    kind: FindingKind
    pointer: str
    excerpt: str
    tool: str | None = None
    pattern: str = ""


def look_alike(tool: str, other: str) -> TextFinding:
    """The finding on a tool whose name looks like the name of another tool."""
    return TextFinding(kind=FindingKind.NAME, pointer="/name", excerpt=f"{tool} looks like {other}", tool=tool)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationChange:
    """Effect of an import on one operation.

    `was` is the tool's former name, if it changes. `moved` is the former or new identity of an operation with the same
    operationId.
    """

    identity: str
    tool: str
    impacts: tuple[Impact, ...] = ()
    """The impacts of all its differences, the most harmful first."""
    was: str | None = None
    moved: str | None = None
    differences: tuple[Difference, ...] = ()
    left_out: int = 0
    """Number of further differences."""
    recent_calls: int | None = None
    """Calls of a removed tool in the last seven days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportChanges:
    """Differences between the tools of an import and of the previous version; operations are compared by identity.

    `changed` contains tools with the same name whose listing, request or safety differs. In each list, the most harmful
    changes come first.
    """

    sensitive: tuple[SensitiveChange, ...] = ()
    added: tuple[OperationChange, ...] = ()
    removed: tuple[OperationChange, ...] = ()
    renamed: tuple[OperationChange, ...] = ()
    changed: tuple[OperationChange, ...] = ()
    document: tuple[Difference, ...] = ()
    """Differences in the output of the query tools, beyond the tools."""
    document_left_out: int = 0
    findings: tuple[TextFinding, ...] = ()
    """Suspicious text that is new in this version."""

    @property
    def is_empty(self) -> bool:
        """True if no tool and no output of the query tools has changed."""
        return not (self.added or self.removed or self.renamed or self.changed or self.document)

    @property
    def is_additive(self) -> bool:
        """True if tools are only new, or wider without new text; no sensitive difference, text change or finding.

        New text in a wider tool counts as `Impact.TEXT` of that tool.
        """
        is_harmful = self.sensitive or self.removed or self.renamed or self.findings or self.document_left_out
        impacts = {impact for one in self.changed for impact in one.impacts} | {one.impact for one in self.document}
        return not is_harmful and impacts <= {Impact.WIDENING}

    def count(self, impact: Impact) -> int:
        """Return the number of tools whose most harmful impact is this one, new tools excluded."""
        return sum(impact in one.impacts[:1] for one in (*self.removed, *self.renamed, *self.changed))


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTool:
    """One imported tool in its current form, for the comparison; `plan` is its encoded request plan."""

    identity: str
    operation_id: str | None
    name: str
    definition: bytes
    plan: bytes
    safety: Safety
    tags: tuple[str, ...] = ()
    input_schema: bytes | None = None
    """The full input schema, if the definition has a shortened one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedVersion:
    """The active version of a source, with which an import is compared."""

    tools: tuple[ComparedTool, ...] = ()
    outline: bytes = field(default=b"", repr=False)
    findings: tuple[TextFinding, ...] = ()
