"""The changes of an import to the tools of its source, matched by the identity of their operations.

Every changed tool is listed. Differences with excerpts are limited per tool and in total; the most harmful ones come
first.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import msgspec

from gateway.domain.http.plans import RequestPlan
from gateway.domain.sources import Compilation, CompiledOperation
from gateway.domain.tools import digest_input
from gateway.domain.updates.source_changes import (
    SENSITIVE,
    ComparedTool,
    ComparedVersion,
    Difference,
    DifferenceKind,
    FindingKind,
    Impact,
    ImportChanges,
    OperationChange,
    SensitiveChange,
    TextFinding,
)
from gateway.openapi.query.outline import open_outline
from gateway.openapi.review.excerpts import cut, make_difference
from gateway.openapi.review.limits import (
    MAX_COUNTED,
    MAX_IN_ALL,
    MAX_NAMED,
    MAX_NEW_FINDINGS,
    MAX_OF_DOCUMENT,
    MAX_OF_TOOL,
    MAX_SENSITIVE,
)
from gateway.openapi.review.outline_differences import compare_outlines
from gateway.openapi.review.request_differences import sources_using, token_urls
from gateway.openapi.review.schema_differences import TYPES
from gateway.openapi.review.text_findings import find_hosts
from gateway.openapi.review.tool_differences import compare_tool, decode_plan, is_unchanged

_IMPACTS = tuple(Impact)
_TYPE = f'"?(?:{"|".join(sorted(TYPES))})"?'
_PLAIN_TYPES = re.compile(rf"{_TYPE}|\[{_TYPE}(?:,{_TYPE})*\]")
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"')
_TYPE_STRINGS = frozenset(f'"{name}"'.encode() for name in TYPES)
_PLAIN_VALUES = re.compile(r"optional|false|-?[0-9.]+")
_RANKS = {kind: rank for rank, kind in enumerate(DifferenceKind)}


class _FoundChange(msgspec.Struct, frozen=True):
    """A change with all its differences."""

    change: OperationChange
    differences: Sequence[Difference]


def compare_versions(before: ComparedVersion, after: Compilation) -> ImportChanges:
    """Return the differences between the active version of a source and a compilation."""
    known = {tool.identity: tool for tool in before.tools}
    kept = [(tool, made) for made in after.operations if (tool := known.pop(made.identity, None)) is not None]
    paired = {made.identity for _, made in kept}
    fresh = [made for made in after.operations if made.identity not in paired]
    moves = _match_ids(known.values(), fresh)
    added = list(_added_operations(before, fresh, moves))
    changed = list(_changed_operations(kept))
    removed = [_FoundChange(_removed(tool, moves), ()) for tool in known.values()]
    document = sorted(islice(compare_outlines(before.outline, after.outline), MAX_COUNTED), key=_rank)
    room = _ListingBudget()
    return ImportChanges(
        sensitive=_summarise([*added, *changed]),
        removed=room.fit(removed),
        renamed=room.fit(one for one in changed if one.change.was is not None),
        changed=room.fit(one for one in changed if one.change.was is None),
        added=room.fit(added),
        document=tuple(document[:MAX_OF_DOCUMENT]),
        document_left_out=len(document[MAX_OF_DOCUMENT:]),
        findings=_new_findings(before, after, [*fresh, *(made for _, made in kept)]),
    )


def _match_ids(gone: Iterable[ComparedTool], fresh: Iterable[CompiledOperation]) -> Mapping[str, ComparedTool]:
    """Map each new operation to the removed tool with the same operationId, if both are unambiguous."""
    by_id: dict[str, list[ComparedTool]] = defaultdict(list)
    for tool in gone:
        by_id[tool.operation_id or ""].append(tool)
    wanted = Counter(made.operation_id or "" for made in fresh)
    return {
        made.identity: by_id[made.operation_id][0]
        for made in fresh
        if made.operation_id and len(by_id[made.operation_id]) == 1 and wanted[made.operation_id] == 1
    }


def _added_operations(
    before: ComparedVersion, fresh: Iterable[CompiledOperation], moves: Mapping[str, ComparedTool]
) -> Iterator[_FoundChange]:
    """Yield new operations with their sensitive parts, or with their differences from the replaced operation."""
    plans = [decode_plan(tool.plan) for tool in before.tools]
    origins = {plan.origin for plan in plans}
    schemes = {scheme for plan in plans for scheme in sources_using(plan)}
    urls = {url for plan in plans for url in token_urls(plan)}
    for made in fresh:
        former = moves.get(made.identity)
        if former is None:
            differences = list(_sensitive_news(made.plan, origins=origins, schemes=schemes, urls=urls))
            impacts = [Impact.WIDENING]
        else:
            differences, impacts = sorted(islice(compare_tool(former, made), MAX_COUNTED), key=_rank), []
        change = OperationChange(
            identity=made.identity,
            tool=made.tool,
            impacts=_impacts(differences, impacts),
            moved=None if former is None else former.identity,
        )
        yield _FoundChange(change, differences)


def _sensitive_news(plan: RequestPlan, *, origins: set[str], schemes: set[str], urls: set[str]) -> Iterator[Difference]:
    hosts = [*({plan.origin} - origins), *sorted(token_urls(plan) - urls)]
    for host in hosts:
        yield make_difference(DifferenceKind.HOST, Impact.BREAKING, "/request/origin", old=None, new=host)
    for scheme in sorted(sources_using(plan) - schemes):
        yield make_difference(DifferenceKind.CREDENTIALS, Impact.BREAKING, "/request/security", old=None, new=scheme)


def _changed_operations(kept: Iterable[tuple[ComparedTool, CompiledOperation]]) -> Iterator[_FoundChange]:
    """Yield the operations of both versions that differ."""
    for tool, made in kept:
        if is_unchanged(tool, made):
            continue
        differences = sorted(islice(compare_tool(tool, made), MAX_COUNTED), key=_rank)
        was = None if tool.name == made.tool else tool.name
        if differences or was is not None:
            further = [Impact.BREAKING] if was is not None else []
            # guard: rule-whole-comparison
            if len(differences) == MAX_COUNTED:
                further.append(Impact.BREAKING)
            is_wider = all(one.impact is Impact.WIDENING for one in differences)
            # guard: rule-no-new-text
            if is_wider and (any(map(_adds_text, differences)) or _lists_new_words(tool, made)):
                further.append(Impact.TEXT)
            impacts = _impacts(differences, further)
            change = OperationChange(identity=made.identity, tool=made.tool, was=was, impacts=impacts)
            yield _FoundChange(change, differences)


def _adds_text(difference: Difference) -> bool:
    """True if a difference that widens a tool has new words that agents read: names, descriptions, values, examples.

    Removed limits, numbers, JSON types and a requirement that ends add no text. Anything else does.
    """
    new = difference.new
    if new is None:
        return False
    plain = _PLAIN_TYPES if difference.pointer.endswith("/type") else _PLAIN_VALUES
    return difference.kind is DifferenceKind.ARGUMENT_ADDED or plain.fullmatch(new) is None


def _lists_new_words(tool: ComparedTool, made: CompiledOperation) -> bool:
    """True if the listed definition has a string that the former one lacks, such as the name of a shared schema."""
    old, new = (_STRINGS.findall(one.definition + (one.input_schema or b"")) for one in (tool, made))
    digest = f'"{digest_input(made.input_schema or b"")}"'.encode()  # identifies the full schema of a shortened tool
    return not {*old, *_TYPE_STRINGS, digest}.issuperset(new)


def _removed(tool: ComparedTool, moves: Mapping[str, ComparedTool]) -> OperationChange:
    moved = next((identity for identity, former in moves.items() if former is tool), None)
    return OperationChange(identity=tool.identity, tool=tool.name, impacts=(Impact.BREAKING,), moved=moved)


def _impacts(differences: Iterable[Difference], further: Iterable[Impact]) -> tuple[Impact, ...]:
    found = {*further, *(one.impact for one in differences)}
    return tuple(impact for impact in _IMPACTS if impact in found)


def _rank(difference: Difference) -> int:
    return _RANKS[difference.kind]


class _ListingBudget:
    """Budget of listed differences: the number that may still be listed."""

    def __init__(self) -> None:
        self._left = MAX_IN_ALL

    def fit(self, found: Iterable[_FoundChange]) -> tuple[OperationChange, ...]:
        """Return the changes with as many differences as fit, the most harmful changes first."""
        ordered = sorted(found, key=lambda one: (min(map(_rank, one.differences), default=0), one.change.identity))
        return tuple(self._fit(one) for one in ordered)

    def _fit(self, found: _FoundChange) -> OperationChange:
        listed = tuple(found.differences[: min(MAX_OF_TOOL, self._left)])
        self._left -= len(listed)
        return replace(found.change, differences=listed, left_out=len(found.differences) - len(listed))


def _summarise(found: Iterable[_FoundChange]) -> tuple[SensitiveChange, ...]:
    """Return the sensitive differences, each with the affected tools."""
    tools: dict[tuple[DifferenceKind, str | None, str | None], list[str]] = defaultdict(list)
    for one in found:
        for difference in one.differences:
            if difference.kind in SENSITIVE:
                tools[difference.kind, difference.old, difference.new].append(one.change.tool)
    ordered = sorted(tools.items(), key=lambda item: (_RANKS[item[0][0]], -len(item[1])))
    return tuple(
        SensitiveChange(kind=kind, old=old, new=new, tools=len(names), named=tuple(names[:MAX_NAMED]))
        for (kind, old, new), names in ordered[:MAX_SENSITIVE]
    )


def _new_findings(
    before: ComparedVersion, after: Compilation, made: Sequence[CompiledOperation]
) -> tuple[TextFinding, ...]:
    """Return the findings that are new in this version, and the hosts of URLs that no earlier text contained."""
    known = {_key(one) for one in before.findings}
    found = [one for one in after.report.findings if one.kind is FindingKind.MORE or _key(one) not in known]
    known_hosts = find_hosts(*(tool.definition for tool in before.tools), open_outline(before.outline))
    texts = [(operation.tool, operation.definition) for operation in made]
    for tool, text in [*texts, (None, open_outline(after.outline) if before.outline else b"")]:
        hosts = find_hosts(text) - known_hosts
        known_hosts |= hosts
        found += (TextFinding(kind=FindingKind.URL, pointer="", excerpt=cut(host), tool=tool) for host in sorted(hosts))
    return tuple(found[:MAX_NEW_FINDINGS])


def _key(finding: TextFinding) -> bytes:
    return msgspec.json.encode(replace(finding, pointer=""))
