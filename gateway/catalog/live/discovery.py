"""Validation of the primitives that a live source lists.

Each primitive is validated separately, so an invalid one does not affect others. The list is untrusted: its length, the
sizes of definitions and the number of notices are limited. The functions have no side effects but may run long, so
callers run them in a thread.
"""

import hashlib
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate

import orjson

from gateway.catalog.live.assessment import assess_tool
from gateway.catalog.live.lenient_definitions import read_definition
from gateway.catalog.live.limits import DISCOVERY_CPU_S, MAX_DEFINITION_BYTES, MAX_NOTICE_LENGTH, MAX_NOTICES, MAX_READ
from gateway.catalog.live.remote_names import Place, assign_names, place_of
from gateway.catalog.live.text_review import find_suspicious
from gateway.definitions.excerpts import shorten
from gateway.definitions.live.foreign_meta import foreign_meta
from gateway.definitions.live.page_digests import with_digest
from gateway.definitions.live.page_uris import is_page, pages_of, shown_uri
from gateway.domain.json_access import as_object, encode_exact
from gateway.domain.live_sources import DiscoveredPrimitive, Discovery, LivePrimitive, LiveSource, RememberedPrimitive
from gateway.domain.primitives import Family
from gateway.domain.tenancy.policy import Safety
from gateway.domain.updates.source_changes import TextFinding
from gateway.errors import DefinitionInvalid
from gateway.upstream.live.agent.limits import MAX_DEFINITIONS_BYTES, MAX_PRIMITIVES

MAX_REMOTE_LENGTH = {Family.TOOL: 256, Family.PROMPT: 256, Family.RESOURCE: 2_048, Family.TEMPLATE: 2_048}

_FIELDS: Mapping[Family, Sequence[str]] = {
    Family.TOOL: ("title", "description", "inputSchema", "outputSchema", "annotations", "icons", "_meta"),
    Family.RESOURCE: ("name", "title", "description", "mimeType", "size", "annotations", "icons", "_meta"),
    Family.TEMPLATE: ("name", "title", "description", "mimeType", "annotations", "icons", "_meta"),
    Family.PROMPT: ("title", "description", "arguments", "icons", "_meta"),
}
_WITH_URIS = frozenset((Family.RESOURCE, Family.TEMPLATE))
_READ_ONLY = "MCP defines resources and prompts as read-only"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The valid primitives of a discovery, each with a name that is unique in its family, and the notices.

    `faults` contains the reasons of refused primitives; primitives that were not reached have none. `findings` are
    suspicious texts of the valid ones.
    """

    primitives: Sequence[LivePrimitive]
    notices: Sequence[str]
    faults: Mapping[Place, str]
    findings: Mapping[Place, tuple[TextFinding, ...]] = field(default_factory=dict[Place, tuple[TextFinding, ...]])


class _Refused(Exception):
    """The reason that one primitive is skipped."""


@dataclass(slots=True)
class _Notices:
    kept: list[str] = field(default_factory=list[str])
    dropped: int = 0
    faults: dict[Place, str] = field(default_factory=dict[Place, str])

    def add(self, text: str) -> None:
        if len(self.kept) < MAX_NOTICES - 1:
            self.kept.append(shorten(text, MAX_NOTICE_LENGTH))
        else:
            self.dropped += 1

    def refuse(self, place: Place, reason: str) -> None:
        self.faults[place] = shorten(reason, MAX_NOTICE_LENGTH)
        self.add(f"{place[0].replace('_', ' ')} {shorten(place[1])}: {reason}")

    def all(self) -> Sequence[str]:
        return [*self.kept, f"and {self.dropped} more notices"] if self.dropped else self.kept


def read_discovery(
    source: LiveSource,
    discovery: Discovery,
    known: Sequence[RememberedPrimitive],
    *,
    room: int,
    cpu_time_s: float = DISCOVERY_CPU_S,
) -> Reading:
    """Validate and name the primitives of a discovery.

    A primitive that is in `known` keeps its name. `room` is the number of primitives that the tenant may still add.
    After `cpu_time_s` of CPU time, the remaining primitives are skipped.
    """
    began = time.thread_time()
    notices = _Notices()
    for text in discovery.notices:
        notices.add(text)
    selected = list(_select(source, discovery.primitives, notices))
    names = assign_names(source, [place_of(one) for one in selected], known)
    valid: list[LivePrimitive] = []
    max_count, size = min(MAX_PRIMITIVES, max(room, 0)), 0
    for found in selected:
        place = place_of(found)
        if time.thread_time() - began > cpu_time_s:  # guard: live-discovery-time
            skipped = f"up to {len(selected) - len(valid)} primitives were skipped, from {shorten(place[1])} on"
            notices.add(f"{skipped}: their schemas take too long to check")
            break
        if len(valid) >= max_count:
            limit = (
                f"the limit per live source is {MAX_PRIMITIVES}"
                if max_count == MAX_PRIMITIVES
                else "the tenant's limit of primitives is reached"
            )
            notices.add(f"up to {len(selected) - len(valid)} primitives were skipped: {limit}")
            break
        try:
            one = _read(source, found, names[place], notices)
            if size + len(one.definition) > MAX_DEFINITIONS_BYTES:
                raise _Refused(f"the definitions of the live source exceed {MAX_DEFINITIONS_BYTES} bytes in total")
        except _Refused as refused:
            notices.refuse(place, str(refused))
        else:
            valid.append(one)
            size += len(one.definition)
    findings, unsearched = find_suspicious(valid)
    for notice in unsearched:
        notices.add(notice)
    return Reading(primitives=valid, notices=notices.all(), faults=notices.faults, findings=findings)


def digest_of(family: Family, raw: Mapping[str, object], page: str = "") -> str:
    """Digest of a definition as its source sent it, without sizes and times of resources, which change often.

    The digest of a page's contents counts.
    """
    members = {name: raw[name] for name in _FIELDS[family] if raw.get(name) is not None and name != "size"}
    if family is not Family.TOOL and "annotations" in members:
        hints = as_object(members["annotations"]) or {}
        members["annotations"] = {name: value for name, value in hints.items() if name != "lastModified"}
    raw_bytes = orjson.dumps(members, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(raw_bytes + page.encode()).hexdigest()[:32]  # guard: live-page-reviewed


def _select(
    source: LiveSource, offered: Sequence[DiscoveredPrimitive], notices: _Notices
) -> Iterator[DiscoveredPrimitive]:
    """The primitives that match the source's patterns, without invalid and repeated names.

    The pages of these tools match, too, unless a pattern excludes them.
    """
    include, exclude = _compile(source.include), _compile(source.exclude)
    seen: set[Place] = set()
    pages: set[str] = set()
    for one in sorted(offered[:MAX_READ], key=lambda one: one.family is not Family.TOOL):
        family_name, place = one.family.replace("_", " "), (one.family, one.name)
        if not _is_name(one):
            notices.refuse(place, "its name is empty, too long or not printable")
        elif _matches(exclude, one.name) or not (not include or one.name in pages or _matches(include, one.name)):
            continue
        elif one.family in _WITH_URIS and (fault := _fault_of_page(source, one)):
            notices.refuse(place, fault)
        elif place in seen:
            notices.add(
                f"{family_name} {shorten(one.name)}: the source lists this name twice; the second one was skipped"
            )
        else:
            seen.add(place)
            pages |= pages_of(one.definition) if one.family is Family.TOOL else frozenset()
            yield one
    if len(offered) > MAX_READ:
        notices.add(f"the source lists {len(offered)} primitives, of which the first {MAX_READ} were read")


def _is_name(one: DiscoveredPrimitive) -> bool:
    return 0 < len(one.name) <= MAX_REMOTE_LENGTH[one.family] and one.name.isprintable()


def _compile(patterns: Collection[str]) -> Sequence[re.Pattern[str]]:
    return [re.compile(translate(pattern)) for pattern in patterns]


def _matches(patterns: Sequence[re.Pattern[str]], name: str) -> bool:
    return any(pattern.match(name) is not None for pattern in patterns)


def _fault_of_page(source: LiveSource, one: DiscoveredPrimitive) -> str:
    """The reason for which a resource or template cannot be listed as a page; empty if there is none."""
    if not is_page(one.name):
        return ""
    if one.family is Family.TEMPLATE:
        return "a page has to be listed as a resource, because its contents are reviewed"
    try:
        shown_uri(source.name, one.name)
    except ValueError as wrong:
        return str(wrong)
    # guard: live-page-unread
    return "" if one.page or source.accepts_changes else "its contents could not be read for the review"


def _read(source: LiveSource, found: DiscoveredPrimitive, name: str, notices: _Notices) -> LivePrimitive:
    (family, remote), raw = place_of(found), found.definition
    sent = {field: raw[field] for field in _FIELDS[family] if raw.get(field) is not None}
    try:
        if len(orjson.dumps(sent)) > MAX_DEFINITION_BYTES:
            raise _Refused(f"its definition has more than {MAX_DEFINITION_BYTES} bytes")
        digest = digest_of(family, sent, found.page)
    except (TypeError, ValueError):
        raise _Refused("its definition is not JSON") from None
    if (meta := as_object(sent.get("_meta"))) is not None:
        sent["_meta"] = foreign_meta(source.name, meta)
    hints = as_object(sent.get("annotations")) or {}
    level, reason = assess_tool(remote, hints) if family is Family.TOOL else (Safety.SAFE, _READ_ONLY)
    try:
        definition = read_definition(family, remote, name, sent, level=level)
    except DefinitionInvalid as wrong:
        raise _Refused(wrong.message) from None
    for notice in definition.notices:
        notices.add(f"{family.replace('_', ' ')} {shorten(remote)}: {notice}")
    return LivePrimitive(
        family=family,
        name=name,
        remote=remote,
        definition=encode_exact(with_digest(definition.wire, found.page)),
        safety=level,
        safety_reasons=(reason,),
        digest=digest,
    )
