"""Changes of a source: the semantic differences between its tools and those of another document."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, ClassVar

from gateway.domain.members.markers import About, ShownAs
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


_FORMER = About("The former value; null if there was none.")
_NEW = About("The new value; null if there is none.")
_IsAdditive = Annotated[
    bool, About("True if tools are only added or widened, and no known tool has new or suspicious text.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference; invisible characters in its excerpts are escaped."""

    kind: Annotated[DifferenceKind, About("The kind of the difference.")]
    impact: Annotated[Impact, About("`breaking`, `widening`, or `text` that agents read.")]
    pointer: Annotated[str, About("JSON Pointer into the tool, its `request`, or the output of the query tools.")]
    old: Annotated[str | None, _FORMER] = None
    new: Annotated[str | None, _NEW] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitiveChange:
    """A sensitive difference that several tools share."""

    kind: Annotated[DifferenceKind, About("`host`, `credentials` or `safety`.")]
    old: Annotated[str | None, _FORMER]
    new: Annotated[str | None, _NEW]
    tools: Annotated[int, About("The number of tools with this difference.")]
    named: Annotated[tuple[str, ...], About("The names of the first of these tools.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFinding:
    """A suspicious text for review by a person; it can be harmless."""

    kind: Annotated[FindingKind, About("The kind of the finding.")]
    pointer: Annotated[
        str, About("JSON Pointer into the tool, into the output of the query tools, or (#/…) into the document.")
    ]
    excerpt: Annotated[str, About("The text around the match, with invisible characters escaped.")]
    tool: Annotated[str | None, About("The tool that contains the text; null if no tool contains it.")] = None
    pattern: Annotated[str, About("The pattern that was found; empty if the kind has none.")] = ""


def look_alike(tool: str, other: str) -> TextFinding:
    """The finding on a tool whose name looks like the name of another tool."""
    return TextFinding(kind=FindingKind.NAME, pointer="/name", excerpt=f"{tool} looks like {other}", tool=tool)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationChange:
    """The change of one operation by a new import."""

    stem: ClassVar[str] = "Change"
    identity: str
    tool: Annotated[str, About("The name of the tool; for a removed tool, its former name.")]
    impacts: Annotated[tuple[Impact, ...], About("The impacts of the differences, the most harmful first.")] = ()
    was: Annotated[str | None, About("The former name of a renamed tool.")] = None
    moved: Annotated[str | None, About("The former or new method and path of the same operationId.")] = None
    differences: Annotated[tuple[Difference, ...], About("The most harmful differences, at most 20.")] = ()
    left_out: Annotated[int, ShownAs("differences_left_out"), About("The number of further differences.")] = 0
    recent_calls: Annotated[
        int | None, About("Calls of a removed tool in the last seven days; null for other changes.")
    ] = None

    @property
    def method(self) -> Annotated[str, About("The HTTP method.")]:
        """The first part of the identity."""
        return self.identity.partition(" ")[0]

    @property
    def path(self) -> Annotated[str, About("The path, as written in the document.")]:
        """The second part of the identity."""
        return self.identity.partition(" ")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportChanges:
    """The differences from the tools of the previous version, by method and path; the most harmful come first."""

    stem: ClassVar[str] = "Changes"
    sensitive: Annotated[tuple[SensitiveChange, ...], About("Changed hosts, credentials and safety levels.")] = ()
    added: Annotated[tuple[OperationChange, ...], About("Operations with a new tool.")] = ()
    removed: Annotated[tuple[OperationChange, ...], About("Operations whose tool is removed.")] = ()
    renamed: Annotated[tuple[OperationChange, ...], About("Operations whose tool is renamed.")] = ()
    changed: Annotated[
        tuple[OperationChange, ...],
        About("Tools of the same name with another definition, request or safety level."),
    ] = ()
    document: Annotated[
        tuple[Difference, ...], About("Differences in the output of the query tools, at most 200.")
    ] = ()
    document_left_out: Annotated[int, About("The number of further differences.")] = 0
    findings: Annotated[tuple[TextFinding, ...], About("Suspicious text that the previous version does not have.")] = ()

    @property
    def is_empty(self) -> bool:
        """True if no tool and no output of the query tools has changed."""
        return not (self.added or self.removed or self.renamed or self.changed or self.document)

    @property
    def is_additive(self) -> _IsAdditive:
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
