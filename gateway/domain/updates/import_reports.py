"""The report of an import: the outcome of every operation of a document, and the cost of listing its tools."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from gateway.domain.members.markers import About, ShownAs
from gateway.domain.overrides import OverrideReport
from gateway.domain.updates.source_changes import TextFinding

_BYTES_PER_TOKEN = 4


def estimate_tokens(size: int) -> int:
    """Estimate the tokens of this many bytes of JSON for a model; a rule of thumb, not a tokenizer."""
    return round(size / _BYTES_PER_TOKEN)


class Status(StrEnum):
    """Import status of one operation of a document."""

    OK = "ok"
    DEGRADED = "degraded"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationReport:
    """The outcome of one operation in an import."""

    stem: ClassVar[str] = "Operation"
    method: Annotated[str, About("The HTTP method.")]
    path: Annotated[str, About("The path, as written in the document.")]
    operation_id: Annotated[str | None, About("The operationId; null if the document has none.")]
    tool: Annotated[str | None, About("The name of the tool; null if the operation was skipped.")]
    status: Annotated[
        Status, About("The result: `ok`, `degraded` (the tool lacks parts of the operation) or `skipped`.")
    ]
    reasons: Annotated[tuple[str, ...], About("The reasons for a degraded or skipped operation.")] = ()
    notes: Annotated[
        tuple[str, ...],
        About("Parts that are omitted from the list entry of the tool, but remain valid in calls."),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationCounts:
    """The number of operations by status."""

    stem: ClassVar[str] = "Counts"
    ok: Annotated[int, About("The number of operations imported completely.")]
    degraded: Annotated[int, About("The number of operations whose tool lacks parts of the operation.")]
    skipped: Annotated[int, About("The number of operations without a tool.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPrice:
    """The cost of one tool in a client's list."""

    stem: ClassVar[str] = "Price"
    tool: Annotated[str, About("The name of the tool.")]
    size: Annotated[int, ShownAs("bytes"), About("The size of the tool's list entry in bytes.")]

    @property
    def estimated_tokens(self) -> Annotated[int, About("The estimated cost in tokens: bytes / 4.")]:
        """Estimated tokens of the tool for a model."""
        return estimate_tokens(self.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleCounts:
    """Counts of examples in the document, by the result of validation against the listed schemas."""

    stem: ClassVar[str] = "Examples"
    accepted: Annotated[int, About("Examples that conform to the listed schemas.")] = 0
    relaxed: Annotated[int, About("Examples that conform only because a keyword that they violate is not checked.")] = 0
    refused: Annotated[int, About("Examples that do not conform; each is a note, or removes an output schema.")] = 0
    unchecked: Annotated[int, About("Examples that were not checked, because they are too large or too numerous.")] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialNeed:
    """Operations that one of several combinations of security schemes suffices for."""

    alternatives: tuple[tuple[str, ...], ...]
    operations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceNeed:
    """A credential that the source lacks."""

    stem: ClassVar[str] = "Need"
    kind: Annotated[Literal["credential"], About("Always `credential`.")] = "credential"
    scheme: Annotated[str, About("The security scheme under which the credential is stored.")]
    operations: Annotated[int, About("The number of operations that need it.")]
    ways: Annotated[tuple[str, ...], About("The ways to give one, as options of the command line.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextShare:
    """The share of a model's context that a list uses."""

    stem: ClassVar[str] = "Context"
    tokens: Annotated[int, About("The size of the context, in tokens.")]
    share: Annotated[float, About("The estimated share of the context that the list uses; 1 is the whole context.")]


CONTEXT_TOKENS = (32_000, 128_000, 200_000, 1_000_000)
"""Usual sizes of a model's context."""
_Listed = Annotated[
    int, About("The number of listed tools: the tools of this source's operations, and the query tools.")
]
_Contexts = Annotated[tuple[ContextShare, ...], About("The share of typical model contexts that the list uses.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """The report of an import: the outcome of every operation, and the cost of listing the tools."""

    stem: ClassVar[str] = "Report"
    operations: Annotated[tuple[OperationReport, ...], About("The result for each operation of the document.")]
    warnings: Annotated[tuple[str, ...], About("Parts of the document that are lost.")]
    tools_list_bytes: Annotated[
        int, About('The size in bytes of `{"tools":[…]}` with the listed tools of this source.')
    ]
    dearest: Annotated[
        tuple[ListedPrice, ...], About("The ten tools with the largest list entries, largest first.")
    ] = ()
    overrides: Annotated[
        tuple[OverrideReport, ...], About("The effect of the import on each override of the source.")
    ] = ()
    listed: int | None = None
    """The number of listed tools; None in reports of an older version."""
    examples: Annotated[
        ExampleCounts | None,
        About("Examples of requests; null in reports of an import by an older release."),
    ] = None
    response_examples: Annotated[
        ExampleCounts | None, About("Examples of responses; null without listed output schemas.")
    ] = None
    findings: Annotated[tuple[TextFinding, ...], About("Suspicious passages of the document, at most 200.")] = ()
    notes: Annotated[
        tuple[str, ...],
        About(
            "Remarks that take nothing from a tool: blemishes of the document, names that differ from it, the size of "
            "the list, and levels of safety that run unconfirmed."
        ),
    ] = ()
    credential_needs: tuple[CredentialNeed, ...] = ()
    """The credentials that operations need, whether they are stored or not; `needs` returns those that lack."""
    ways: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The ways to give a credential, by scheme."""

    def needs(self, stored: Collection[str]) -> tuple[SourceNeed, ...]:
        """Return the credentials that lack while those of the schemes `stored` are there.

        Of several alternatives, the one that lacks least is returned; its ways name the others.
        """
        operations: Counter[str] = Counter()
        ways: dict[str, dict[str, None]] = {}
        for need in self.credential_needs:
            lacking = [tuple(name for name in names if name not in stored) for names in need.alternatives]
            if not all(lacking):
                continue
            first, *others = sorted(dict.fromkeys(lacking), key=len)
            instead = [f"instead: a credential for {' and '.join(names)}" for names in others]
            for scheme in first:
                operations[scheme] += need.operations
                ways.setdefault(scheme, {}).update(dict.fromkeys((*self.ways.get(scheme, ()), *instead)))
        return tuple(
            SourceNeed(scheme=scheme, operations=number, ways=tuple(ways[scheme]))
            for scheme, number in operations.most_common()
        )

    @property
    def tools_listed(self) -> _Listed:
        """Number of listed tools of this source."""
        return sum(one.tool is not None for one in self.operations) if self.listed is None else self.listed

    @property
    def contexts(self) -> _Contexts:
        """The estimated part of usual contexts that the list takes."""
        return tuple(ContextShare(tokens=size, share=round(self.estimated_tokens / size, 4)) for size in CONTEXT_TOKENS)

    @property
    def estimated_tokens(self) -> Annotated[int, About("The estimated cost in tokens: bytes / 4.")]:
        """Estimated tokens of the list for a model."""
        return estimate_tokens(self.tools_list_bytes)

    @property
    def counts(self) -> Annotated[OperationCounts, About("The number of operations by result.")]:
        """The number of operations with each status."""
        return OperationCounts(**{status.value: self.count(status) for status in Status})

    def count(self, status: Status) -> int:
        """Return the number of operations with this status."""
        return sum(operation.status is status for operation in self.operations)
