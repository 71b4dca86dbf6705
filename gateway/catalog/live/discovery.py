"""Validation of the primitives that a live source lists.

Each primitive is validated separately, so an invalid one does not affect others. The list is untrusted: its length, the
sizes of definitions and the number of notices are limited. The functions have no side effects but may run long, so
callers run them in a thread.
"""

import hashlib
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from typing import cast

import orjson

from gateway.catalog.live.assessment import assess_tool, explicit_annotations
from gateway.definitions.contract.prompts import validate_prompt_definition
from gateway.definitions.contract.resources import validate_resource_definition, validate_resource_template_definition
from gateway.definitions.contract.tools import validate_tool_definition
from gateway.definitions.excerpts import shorten
from gateway.definitions.handlers.output_contracts import Definition
from gateway.domain.json_access import as_object, encode_exact
from gateway.domain.live_sources import DiscoveredPrimitive, Discovery, LivePrimitive, LiveSource, RememberedPrimitive
from gateway.domain.primitives import Family
from gateway.domain.tenancy.policy import Safety
from gateway.errors import DefinitionInvalid
from gateway.openapi.operation.names import grants, name_tools

MAX_PRIMITIVES = 500
"""Limit on the primitives of one live source."""
MAX_BYTES = 4 * 1024 * 1024
"""Limit on the definitions of one live source together."""
MAX_DEFINITION_BYTES = 64 * 1024
"""Limit on one definition, in bytes of JSON."""
MAX_NOTICES = 50
MAX_NOTICE_LENGTH = 300
MAX_REMOTE_LENGTH = {Family.TOOL: 256, Family.PROMPT: 256, Family.RESOURCE: 2_048, Family.TEMPLATE: 2_048}
_MAX_READ = 4 * MAX_PRIMITIVES
CPU_TIME_S = 5.0
"""CPU time for one discovery. 500 plain tools take 0.3 s; deliberately expensive schemas took a minute."""

_FIELDS: Mapping[Family, Sequence[str]] = {
    Family.TOOL: ("title", "description", "inputSchema", "outputSchema", "annotations", "icons", "_meta"),
    Family.RESOURCE: ("name", "title", "description", "mimeType", "size", "annotations", "icons", "_meta"),
    Family.TEMPLATE: ("name", "title", "description", "mimeType", "annotations", "icons", "_meta"),
    Family.PROMPT: ("title", "description", "arguments", "icons", "_meta"),
}
_ADDRESS = {Family.TOOL: "name", Family.PROMPT: "name", Family.RESOURCE: "uri", Family.TEMPLATE: "uriTemplate"}
_VALIDATE: Mapping[Family, Callable[[object], Definition]] = {
    Family.TOOL: validate_tool_definition,
    Family.RESOURCE: validate_resource_definition,
    Family.TEMPLATE: validate_resource_template_definition,
    Family.PROMPT: validate_prompt_definition,
}
_DROPPABLE_MEMBERS = frozenset(("title", "icons", "_meta", "annotations", "mimeType", "size"))
"""Members that are dropped if they are invalid. Any other invalid member makes the gateway refuse the primitive."""
_TEXTS = frozenset(("title", "description"))
_READ_ONLY = "MCP defines resources and prompts as read-only"
_MAX_TITLE_LENGTH = 200

Place = tuple[Family, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The valid primitives of a discovery, each with a name that is unique in its family, and the notices.

    `faults` contains the reasons of refused primitives; primitives that were not reached have none.
    """

    primitives: Sequence[LivePrimitive]
    notices: Sequence[str]
    faults: Mapping[Place, str]


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
    cpu_time_s: float = CPU_TIME_S,
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
    names = _assign_names(source, selected, known)
    valid: list[LivePrimitive] = []
    max_count, size = min(MAX_PRIMITIVES, max(room, 0)), 0
    for place, raw in selected:
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
            one = _read(place, names[place], raw)
            if size + len(one.definition) > MAX_BYTES:
                raise _Refused(f"the definitions of the live source exceed {MAX_BYTES} bytes in total")
        except _Refused as refused:
            notices.refuse(place, str(refused))
        else:
            valid.append(one)
            size += len(one.definition)
    return Reading(primitives=valid, notices=notices.all(), faults=notices.faults)


def digest_of(family: Family, raw: Mapping[str, object]) -> str:
    """Digest of a definition as its source sent it, without sizes and times of resources, which change often."""
    members = {name: raw[name] for name in _FIELDS[family] if raw.get(name) is not None and name != "size"}
    if family is not Family.TOOL and "annotations" in members:
        hints = as_object(members["annotations"]) or {}
        members["annotations"] = {name: value for name, value in hints.items() if name != "lastModified"}
    return hashlib.sha256(orjson.dumps(members, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def _select(
    source: LiveSource, offered: Sequence[DiscoveredPrimitive], notices: _Notices
) -> Iterator[tuple[Place, Mapping[str, object]]]:
    """The primitives that match the source's patterns, without invalid and repeated names."""
    include, exclude = _compile(source.include), _compile(source.exclude)
    seen: set[Place] = set()
    for one in offered[:_MAX_READ]:
        family_name, place = one.family.replace("_", " "), (one.family, one.name)
        if not _is_name(one):
            notices.refuse(place, "its name is empty, too long or not printable")
        elif (include and not _matches(include, one.name)) or _matches(exclude, one.name):
            continue
        elif place in seen:
            notices.add(
                f"{family_name} {shorten(one.name)}: the source lists this name twice; the second one was skipped"
            )
        else:
            seen.add(place)
            yield place, one.definition
    if len(offered) > _MAX_READ:
        notices.add(f"the source lists {len(offered)} primitives, of which the first {_MAX_READ} were read")


def _is_name(one: DiscoveredPrimitive) -> bool:
    return 0 < len(one.name) <= MAX_REMOTE_LENGTH[one.family] and one.name.isprintable()


def _compile(patterns: Collection[str]) -> Sequence[re.Pattern[str]]:
    return [re.compile(translate(pattern)) for pattern in patterns]


def _matches(patterns: Sequence[re.Pattern[str]], name: str) -> bool:
    return any(pattern.match(name) is not None for pattern in patterns)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RemoteName:
    """A name at a live source, in the form that `name_tools` accepts."""

    identity: str
    method: str

    @property
    def path(self) -> str:
        return self.identity

    @property
    def operation_id(self) -> str:
        return self.identity


def _assign_names(
    source: LiveSource, selected: Sequence[tuple[Place, object]], known: Sequence[RememberedPrimitive]
) -> Mapping[Place, str]:
    """Names of tools and prompts, by the same rules as for imported tools; resources and templates keep their URIs."""
    names_by_place = {place: place[1] for place, _ in selected}
    for family in (Family.TOOL, Family.PROMPT):
        remotes = [remote for (of, remote), _ in selected if of is family]
        known_names = {
            one.primitive.remote: one.primitive.name
            for one in known
            if one.primitive.family is family
            and grants(one.primitive.name, one.primitive.remote, one.primitive.remote, prefix=source.prefix)
        }
        shared = {name for name, uses in Counter(known_names.values()).items() if uses > 1}
        known_names = {remote: name for remote, name in known_names.items() if name not in shared}
        assigned = name_tools(
            [_RemoteName(identity=remote, method=family.value) for remote in remotes],
            prefix=source.prefix,
            known=known_names,
        )
        names_by_place |= {(family, remote): assigned[remote].text for remote in remotes}
    return names_by_place


def _read(place: Place, name: str, raw: Mapping[str, object]) -> LivePrimitive:
    family, remote = place
    sent = {field: raw[field] for field in _FIELDS[family] if raw.get(field) is not None}
    try:
        if len(orjson.dumps(sent)) > MAX_DEFINITION_BYTES:
            raise _Refused(f"its definition has more than {MAX_DEFINITION_BYTES} bytes")
        digest = digest_of(family, sent)
    except (TypeError, ValueError):
        raise _Refused("its definition is not JSON") from None
    hints = as_object(sent.get("annotations")) or {}
    level, reason = assess_tool(remote, hints) if family is Family.TOOL else (Safety.SAFE, _READ_ONLY)
    definition = _validate(family, _with_required_members(family, remote, name, sent, level))
    return LivePrimitive(
        family=family,
        name=name,
        remote=remote,
        definition=encode_exact(definition.to_wire()),
        safety=level,
        safety_reasons=(reason,),
        digest=digest,
    )


def _with_required_members(
    family: Family, remote: str, name: str, sent: Mapping[str, object], level: Safety
) -> dict[str, object]:
    """The definition with the members that the gateway's contract requires and the protocol does not."""
    whole = {_ADDRESS[family]: name, **_without_blank_texts(sent)}
    if isinstance(arguments := sent.get("arguments"), list):
        items = cast("list[object]", arguments)
        whole["arguments"] = [_without_blank_texts(one) if (one := as_object(each)) else each for each in items]
    if family is Family.TOOL:
        hints, schema = as_object(sent.get("annotations")) or {}, sent.get("inputSchema", {})
        title = hints.get("title")
        whole["annotations"] = explicit_annotations(hints, level)
        if "title" not in sent and isinstance(title, str) and len(title) <= _MAX_TITLE_LENGTH and title.isprintable():
            whole["title"] = title
        if "description" not in whole:
            whole["description"] = remote
        members = as_object(schema)
        whole["inputSchema"] = schema if members is None else {"type": "object", "properties": {}, **members}
    elif family is not Family.PROMPT:
        whole.setdefault("name", remote[:_MAX_TITLE_LENGTH])
    return whole


def _without_blank_texts(members: Mapping[str, object]) -> dict[str, object]:
    """The members without blank titles and descriptions, which servers send for undocumented functions."""
    return {
        name: value
        for name, value in members.items()
        if not (name in _TEXTS and isinstance(value, str) and not value.strip())
    }


def _validate(family: Family, whole: dict[str, object]) -> Definition:
    """The validated definition, without invalid optional members."""
    try:
        return _VALIDATE[family](whole)
    except DefinitionInvalid as wrong:
        members = {fault.pointer.split("/")[1] if "/" in fault.pointer else "" for fault in wrong.faults}
        if not members <= _DROPPABLE_MEMBERS:
            raise _Refused(wrong.message) from None
        rest = {name: value for name, value in whole.items() if name not in members}
    try:
        return _VALIDATE[family](rest)
    except DefinitionInvalid as wrong:
        raise _Refused(wrong.message) from None
