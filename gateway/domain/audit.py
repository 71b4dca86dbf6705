"""Audit entries, and the results of verifying an audit trail."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated

import msgspec

from gateway.domain.identifiers import AuditId, AuditSinkId, TenantId
from gateway.domain.members.markers import About, Bounds, Length, Option, Setter, Shape
from gateway.domain.members.values import CredentialName
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
_MAX_REASON_LENGTH = 500
_MAX_TARGET_LENGTH = 256


def describe_rule(rule: DecidingRule, reason: str = "") -> dict[str, object]:
    """The members of an entry's detail about the rule that refused the request."""
    named = {name: _cut(text, _MAX_REASON_LENGTH) for name, text in rule._asdict().items() if text}
    return {"rule": named, "reason": _cut(reason, _MAX_REASON_LENGTH)} if reason else {"rule": named}


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
        tool=_cut(target, _MAX_TARGET_LENGTH),
        outcome=outcome,
        correlation_id="",
        action=action,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One row of the audit trail as it is read."""

    id: AuditId
    at: datetime
    kind: AuditKind
    principal: str
    action: str
    target: str
    outcome: str
    correlation_id: str
    detail: dict[str, object] = field(default_factory=dict[str, object])


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
    """A fault at one position of a chain.

    `number` is the number of an entry: the changed entry, the first missing one, the last expected one, or the entry
    that records a break.
    """

    kind: ChainFaultKind
    number: int
    entry: AuditId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The entries of one writer in a tenant's audit trail, verified; `head` is the MAC of the last entry."""

    writer: str
    entries: int
    first: int
    last: int
    head: bytes
    faults: int = 0
    fault: ChainFault | None = None
    """The first fault found."""
    cut: int = 0
    """The number of the last entry that retention removed; the chain begins after it."""

    @property
    def is_whole(self) -> bool:
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
    """The verified anchor of an audit trail; `number` is the number of the signature that the anchor names."""

    state: AnchorState
    number: int = 0
    at: datetime | None = None

    @property
    def is_whole(self) -> bool:
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
    """The comparison with one store; `number` is the newest compared signature, or the first different one."""

    store: str
    state: HeadsState
    number: int = 0
    compared: int = 0
    refused: int = 0

    @property
    def is_contradicted(self) -> bool:
        """True if a head in the store differs from the database, or is missing there."""
        return self.state in {HeadsState.MISSING, HeadsState.CHANGED}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTrail:
    """A tenant's audit trail after verification."""

    chains: Sequence[Chain]
    anchor: Anchor
    stores: Sequence[HeadsCompared] = ()

    @property
    def is_whole(self) -> bool:
        """True if the chains and the anchor are whole, and no reached store contradicts the database."""
        chains_hold = all(chain.is_whole for chain in self.chains)
        return chains_hold and self.anchor.is_whole and not any(store.is_contradicted for store in self.stores)


class SinkKind(StrEnum):
    """Kind of a sink."""

    HTTPS = "https"
    """Signed POST requests with lines of JSON."""
    SYSLOG = "syslog"
    """RFC 5424 messages over TCP or TLS."""
    FILE = "file"
    """A file in the folder that the operator set; only the operator declares it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkStatus:
    """The progress of a sink."""

    delivered: Annotated[int, About("The number of delivered entries."), Shape.LISTED] = 0
    delivered_at: Annotated[datetime | None, About("The time of the last delivery; null: none yet."), Shape.LISTED] = (
        None
    )
    failures: Annotated[int, About("The number of consecutive failures."), Shape.LISTED, Shape.RESET] = 0
    fault: Annotated[
        str | None, About("The reason of the last failure; null if it succeeded."), Shape.LISTED, Shape.RESET
    ] = None
    waiting_since: Annotated[
        datetime | None, About("The time of the oldest entry that was not delivered; null if all were.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailSink:
    """An external system that receives every entry of the tenant's audit trail at least once."""

    id: AuditSinkId
    name: str
    kind: Annotated[
        SinkKind,
        About("The protocol: `https`, `syslog`, or `file`, which is for the operator only."),
        Setter.CREATION,
        Option(is_argument=True),
        Shape.LISTED,
    ]
    target: Annotated[
        str,
        Length(least=1, most=2048),
        About(
            "An https URL; `tcp://host:port` or `tls://host:port` for syslog, which the egress list must name; or the"
            " name of a file in the operator's folder."
        ),
        Option(is_argument=True),
        Shape.LISTED,
    ]
    credential: Annotated[
        CredentialName | None, About("The name of a stored credential to send, for `https` only; null sends none.")
    ] = None
    enabled: Annotated[bool, About("False pauses delivery."), Shape.LISTED] = True
    whole: Annotated[
        Omitted[bool], About("True delivers the whole trail; false the entries from now on."), Setter.ONCE
    ] = False
    version: int = 1
    created_at: datetime
    updated_at: datetime
    status: Omitted[SinkStatus] = SinkStatus()


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
