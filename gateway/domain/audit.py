"""Audit entries, and the results of verifying an audit trail."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar

import msgspec

from gateway.domain.calls.limits import MAX_REASON_LENGTH, MAX_TARGET_LENGTH
from gateway.domain.identifiers import AuditId, TenantId
from gateway.domain.members.markers import About, Bounds, Option, Shape, ShownAs
from gateway.domain.tenancy.policy import Levels
from gateway.domain.tenancy.recorded_fields import Omitted
from gateway.errors import DecidingRule

SIGN_IN = "sign-in"
"""Action of the entries of failed sign-ins."""


class RuleKind(StrEnum):
    """Kind of the rule that refused a request; `docs/audit.md` lists the names of the rules of each kind."""

    ACCESS = "access"
    APPROVAL = "approval"
    CREDENTIAL = "credential"
    EXPOSURE = "exposure"
    GUARDRAIL = "guardrail"
    LIMIT = "limit"
    OPERATOR = "operator"
    OVERRIDE = "override"
    OWNER = "owner"
    POLICY = "policy"
    PROFILE = "profile"
    SCOPE = "scope"
    STATE = "state"
    TENANT = "tenant"
    UNKNOWN = "unknown"


OPERATOR_RULE = DecidingRule(RuleKind.OPERATOR)
"""The rule of what only the operator may do."""


def describe_rule(rule: DecidingRule, reason: str = "") -> dict[str, object]:
    """The members of an entry's detail about the rule that refused the request."""
    named = {name: _cut(text, MAX_REASON_LENGTH) for name, text in rule._asdict().items() if text}
    return {"rule": named, "reason": _cut(reason, MAX_REASON_LENGTH)} if reason else {"rule": named}


def _cut(text: str, limit: int) -> str:
    """A text that a caller may have chosen: printable, and at most `limit` characters."""
    text = text[:limit]
    return text if text.isprintable() else "".join(one if one.isprintable() else "\ufffd" for one in text)


class AuditKind(StrEnum):
    """Kind of an audit entry."""

    CALL_INTENT = "call.intent"
    CALL = "call"
    CHANGE = "change"
    BREAK = "break"
    """The previous entry of the change chain was missing; this entry takes its number."""


class CallRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a call in the audit trail; arguments are stored as a digest, and in `detail` by the tenant's rules.

    `action` is the kind of request: `call` a tool, `read` a resource, `get` a prompt or `complete` a value. `confirm`
    is the user's confirmation of such a request. `tool` is the name or URI of the primitive.
    """

    tenant: TenantId
    kind: AuditKind
    principal: str
    subject: str
    tool: str
    outcome: str
    correlation_id: str
    digest: bytes = b""
    status: int | None = None
    duration_us: int = 0
    result_bytes: int = 0
    action: str = "call"
    levels: Levels | None = None
    """Declared and assessed safety level, if the tenant declared a different level."""
    detail: dict[str, object] | None = None
    """Further members of the entry's detail, as JSON values."""


def refused(
    tenant: TenantId, principal: str, action: str, outcome: str, *, subject: str = "", target: str = ""
) -> CallRecord:
    """The record of a refused request; `target` is the name or URI that the caller sent."""
    return CallRecord(
        tenant=tenant,
        kind=AuditKind.CALL,
        principal=principal,
        subject=subject,
        tool=_cut(target, MAX_TARGET_LENGTH),
        outcome=outcome,
        correlation_id="",
        action=action,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One entry of the audit trail."""

    stem: ClassVar[str] = "Entry"
    id: Annotated[AuditId, About("The id; it never changes.")]
    at: Annotated[datetime, About("The time of the entry.")]
    kind: Annotated[AuditKind, About("The kind: a change, a call, or the intent to call.")]
    principal: Annotated[str, About("The principal, such as `key:key_…` or `operator`.")]
    action: Annotated[str, About("The action, such as `call` or `key.create`.")]
    target: Annotated[str, About("The name or id of the target.")]
    outcome: Annotated[str, About("`ok`, or the code of the error.")]
    correlation_id: Annotated[str, About("The correlation id, which the log and the audit trail also contain.")]
    detail: Annotated[Mapping[str, object], About("The details of the change or call.")] = field(
        default_factory=dict[str, object]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Filter for entries of an audit trail. All set members must match; `until` is exclusive.

    REST, the command line and exports offer exactly these members, with the descriptions of `FILTERS`.
    """

    id: str | None = None
    kind: AuditKind | None = None
    principal: str | None = None
    tool: str | None = None
    outcome: str | None = None
    correlation_id: str | None = None
    client: str | None = None
    since: datetime | None = None
    until: datetime | None = None


FILTERS: Mapping[str, str] = {
    "id": "Only the entry with this id.",
    "kind": "Only entries of this kind.",
    "principal": "Only entries of this principal, such as `key:key_…` or `operator`.",
    "tool": "Only calls of this tool.",
    "outcome": "Only entries with this outcome, such as `ok`, `limited`, `not_found` or `policy.denied`.",
    "correlation_id": "Only entries of the request with this correlation id, which every response and error has.",
    "client": "Only requests of the client that gives itself this name.",
    "since": "Only entries at or after this time, such as 2030-01-31T00:00:00Z.",
    "until": "Only entries before this time.",
}
"""The members of `AuditFilter`, each with its description."""

SIGNERS = "heads:"
"""Prefix of the writer names of signature chains, which record the heads of the other chains."""


class ChainFaultKind(StrEnum):
    """Kind of a fault in a chain of the audit trail."""

    CHANGED = "changed"
    MISSING = "missing"
    SHORTENED = "shortened"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainFault:
    """A fault in a hash chain of the audit trail."""

    kind: Annotated[ChainFaultKind, About("The kind of the fault.")]
    number: Annotated[
        int,
        About(
            "The number of the changed entry, of the first missing entry, of the expected last entry, or of the record "
            "of a break."
        ),
    ]
    entry: Annotated[
        AuditId | None,
        About("The id of the entry that shows the fault; null if the end of the chain is missing."),
    ] = None


_NoFault = Annotated[bool, ShownAs("ok"), About("True if the chain has no fault.")]
_Head = Annotated[
    str, ShownAs("head"), About("The MAC of the last entry, in hexadecimal; it covers all previous entries.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The hash chain of one writer of the audit trail."""

    writer: Annotated[
        str,
        About(
            "The writer: `catalog` for changes; for calls, one connection of a replica. A name with the prefix "
            "`heads:` is a chain of signatures over the ends of the other chains."
        ),
    ]
    entries: Annotated[int, About("The number of entries of this writer.")]
    first: Annotated[int, About("The number of the writer's first entry.")]
    last: Annotated[int, About("The number of the writer's last entry.")]
    head: bytes
    faults: Annotated[int, About("The number of faults.")] = 0
    fault: Annotated[ChainFault | None, About("The first fault; null without faults.")] = None
    cut: Annotated[int, About("The number of the last entry that retention removed; 0 if none.")] = 0

    @property
    def head_text(self) -> _Head:
        """The MAC of the last entry in hexadecimal digits."""
        return self.head.hex()

    @property
    def is_whole(self) -> _NoFault:
        """True if verification found no fault in the chain."""
        return self.fault is None

    @property
    def is_of_signatures(self) -> bool:
        """True if the chain contains signatures over the heads of other chains, instead of audit entries."""
        return self.writer.startswith(SIGNERS)


class AnchorKind(StrEnum):
    """Origin of the anchor of an audit trail."""

    CREATED = "created"
    """Created together with the tenant."""
    ADOPTED = "adopted"
    """Created at the first signature of a tenant older than anchors; earlier entries are trusted."""
    BROKEN = "broken"
    """Created to replace an anchor that was missing or forged."""


class AnchorState(StrEnum):
    """Result of verifying the anchor of an audit trail."""

    CREATED = "created"
    ADOPTED = "adopted"
    PENDING = "pending"
    """No anchor yet: the tenant is older than anchors, and nothing has been signed since."""
    MISSING = "missing"
    CHANGED = "changed"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """The anchor: the beginning of the audit trail and its newest signature."""

    state: Annotated[
        AnchorState,
        About(
            "`created`: created with the tenant. `adopted`: created with the first signature of a tenant that is older "
            "than anchors; its earlier entries are trusted. `pending`: not created yet. `missing`, `changed` and "
            "`broken` are faults."
        ),
    ]
    number: Annotated[int, About("The number of the newest signature in the anchor.")] = 0
    at: Annotated[datetime | None, About("The time at which the anchor was created; null if unreadable.")] = None

    @property
    def is_whole(self) -> Annotated[bool, ShownAs("ok"), About("True if the anchor has no fault.")]:
        """True if the anchor is intact, or the trail has none yet."""
        return self.state in {AnchorState.CREATED, AnchorState.ADOPTED, AnchorState.PENDING}


class HeadsState(StrEnum):
    """Result of the comparison with one store of heads outside the database."""

    MATCHED = "matched"
    EMPTY = "empty"
    """The store has no head of the tenant, so there is nothing to compare."""
    REFUSED = "refused"
    """The store has heads, but no configured secret key decrypts them: no comparison, but a reason to investigate."""
    UNREACHABLE = "unreachable"
    MISSING = "missing"
    """The database ends before the head in the store."""
    CHANGED = "changed"
    """The database has a different signature with that number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadsCompared:
    """The comparison of the audit trail with one store of chain heads outside the database."""

    store: Annotated[str, About("The store: `redis`, or the configured file or URL.")]
    state: Annotated[
        HeadsState,
        About(
            "`matched`: no difference. `missing` and `changed`: faults: the database lacks heads of the store, or has "
            "different ones. `empty`, `unreachable`, and `refused` (no configured secret key decrypts the heads): "
            "nothing was compared."
        ),
    ]
    number: Annotated[int, About("The number of the newest compared signature, or of the first that differs.")] = 0
    compared: Annotated[int, About("The number of heads of this tenant in the store.")] = 0
    refused: Annotated[int, About("The number of further heads that no configured secret key decrypts.")] = 0

    @property
    def is_consistent(
        self,
    ) -> Annotated[bool, ShownAs("ok"), About("True if the database has all heads of the store.")]:
        """False if a head in the store differs from the database, or is missing there."""
        return self.state not in {HeadsState.MISSING, HeadsState.CHANGED}


_Whole = Annotated[bool, ShownAs("ok"), About("True if the chains, the anchor and the stores show no fault.")]
_Removed = Annotated[int, About("The number of entries that retention removed, according to signed records.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTrail:
    """The result of verifying the tenant's audit trail."""

    stem: ClassVar[str] = "Trail"
    chains: Annotated[Sequence[Chain], ShownAs("writers"), About("One chain for each writer of the trail.")]
    anchor: Annotated[Anchor, About("The anchor of the trail.")]
    stores: Annotated[
        Sequence[HeadsCompared], About("One comparison for each store of heads outside the database.")
    ] = ()

    @property
    def is_whole(self) -> _Whole:
        """True if the chains and the anchor are whole, and no reached store contradicts the database."""
        chains_hold = all(chain.is_whole for chain in self.chains)
        return chains_hold and self.anchor.is_whole and all(store.is_consistent for store in self.stores)

    @property
    def entries(self) -> Annotated[int, About("The number of entries in the trail.")]:
        """The number of entries in all chains of entries."""
        return sum(chain.entries for chain in self.chains if not chain.is_of_signatures)

    @property
    def removed(self) -> _Removed:
        """The number of entries that were removed from all chains."""
        return sum(chain.cut for chain in self.chains)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRetention:
    """Retention of a tenant's audit entries."""

    days: Annotated[
        int | None,
        Bounds(least=1, most=36_500),
        Shape.DAYS,
        Option(is_argument=True, metavar="DAYS", nothing="forever"),
        About("Days after which entries are removed; null keeps all entries."),
    ] = None
    fault: Annotated[Omitted[str | None], Shape.RESET] = None
    """The reason why the last cut skipped a chain."""
    version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Removable:
    """The entries that a retention would remove now."""

    entries: Annotated[int, About("The number of entries, counted up to about 100,000.")] = 0
    chains: Annotated[int, About("The number of writers (chains) with such entries.")] = 0
    oldest: Annotated[datetime | None, About("The time of the oldest entry; null if there is none.")] = None
    newest: Annotated[datetime | None, About("The time of the newest entry.")] = None
    is_partial: Annotated[bool, About("True if there are more entries than were counted.")] = False
    held_by: Annotated[
        tuple[str, ...], About("Enabled sinks with undelivered older entries; these entries are kept.")
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionStatus:
    """The entries that a retention has removed, and those that it would remove now."""

    minimum_days: Annotated[int, About("The minimum retention that the operator permits.")]
    removed: Annotated[int, About("The number of removed entries so far.")]
    cut_at: Annotated[datetime | None, About("The time of the last removal.")]
    fault: Annotated[str | None, About("The reason why the last removal skipped a chain; null if it skipped none.")]
    removable: Annotated[Removable, About("The entries that the retention, or `?days` if given, would remove now.")]
