"""Verification of a tenant's audit trail: each entry follows the previous one, and no chain begins late or ends early.

The verification detects edits by an attacker who can write to the database, but does not have the keys. A changed or
inserted entry does not match its MAC; a deleted entry leaves a gap in the numbers. The chain of changes must begin with
the creation of the tenant and end at its revision. The signatures name the ends of all chains. The anchor and the
entries of changes name signatures, and stores outside the database contain the heads of the signatures.
"""

import hashlib
import hmac
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

from gateway.domain.audit import (
    SIGNERS,
    Anchor,
    AnchorKind,
    AnchorState,
    AuditKind,
    Chain,
    ChainFault,
    ChainFaultKind,
)
from gateway.domain.identifiers import AuditId
from gateway.store.audit.anchors import TRAIL, AnchorReferences, StoredAnchor, read_reference
from gateway.store.audit.cuts import ACTION, Cut
from gateway.store.audit.export_lines import VerifyKey
from gateway.store.audit.hash_chain import CATALOG, CREATION, START, Link, link
from gateway.store.audit.signed_heads import Signature, seal

_SIGNATURES: Final = SIGNERS + TRAIL
_NO_REFERENCES: Final = AnchorReferences()


@dataclass(slots=True)
class _VerifiedChain:
    """State of the verification of one chain."""

    writer: str
    entries: int = 0
    first: int = 0
    last: int = 0
    head: bytes = START
    faults: int = 0
    fault: ChainFault | None = None
    cut: int = 0

    def report(self, kind: ChainFaultKind, number: int, entry: AuditId | None = None) -> None:
        """Count a fault; only the first one is stored."""
        self.faults += 1
        self.fault = self.fault or ChainFault(kind=kind, number=number, entry=entry)

    def step(self, number: int, expected: int, mac: bytes, *, fits: bool, entry: AuditId | None = None) -> None:
        """Advance to the next entry; report a fault if it does not follow the previous one."""
        if number > expected:
            self.report(ChainFaultKind.MISSING, expected, entry)
        elif number < expected or not fits:
            self.report(ChainFaultKind.CHANGED, number, entry)
        if not self.entries:
            self.first = number
        self.entries += 1
        self.last = number
        self.head = mac

    def begin_after_cut(self, one: Cut, *, is_signed: bool) -> None:
        """Continue after deleted entries; report a fault if the record is forged or does not follow the last one."""
        if not is_signed:  # guard: cut-signed
            self.report(ChainFaultKind.CHANGED, one.row.last)
        if one.row.first != self.cut + 1:  # guard: cut-continues
            is_missing = one.row.first > self.cut + 1
            self.report(ChainFaultKind.MISSING if is_missing else ChainFaultKind.CHANGED, self.cut + 1)
        self.cut = one.row.last
        if self.last < one.row.last:
            self.last, self.head = one.row.last, one.row.head

    def closed(self) -> Chain:
        """The result for this chain."""
        return Chain(
            writer=self.writer,
            entries=self.entries,
            first=self.first,
            last=self.last,
            head=self.head,
            faults=self.faults,
            fault=self.fault,
            cut=self.cut,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailKeys:
    """The keys that may have made the MACs of an audit trail, per kind of row. The first key makes new MACs."""

    chain: Sequence[bytes]
    signing: Sequence[bytes] = ()
    anchor: Sequence[bytes] = ()


class TrailCheck:
    """Verifies the chains of one tenant: first the signatures, then the entries, part by part and in order.

    `head_numbers` contains the numbers of signatures to compare later; `signed` then contains their MACs.
    """

    def __init__(
        self,
        keys: TrailKeys,
        *,
        references: AnchorReferences = _NO_REFERENCES,
        head_numbers: Collection[int] = (),
        cut_keys: Sequence[VerifyKey] = (),
    ) -> None:
        self._keys = _CandidateKeys(keys.chain)
        self._cut_keys = cut_keys
        self._batches: dict[int, bytearray] = {}
        self._anchor_kinds: set[str] = set()
        self._signing_keys = _CandidateKeys(keys.signing)
        self._anchor_keys = keys.anchor
        self._references = references
        self._wanted = references.numbers.union(head_numbers)
        self._chains_by_writer: dict[str, _VerifiedChain] = {}
        self._ends: dict[str, int] = {}
        self._is_anchored = False
        self.signed: dict[int, bytes] = {}

    @property
    def last_signature(self) -> int:
        """The number of the newest signature of the audit trail."""
        chain = self._chains_by_writer.get(_SIGNATURES)
        return 0 if chain is None else chain.last

    def follow_signatures(self, signatures: Iterable[Signature]) -> None:
        """Verify the next signatures, and store the ends that valid signatures name."""
        for one in signatures:
            row = one.row
            chain = self._chain(SIGNERS + row.signer)
            fits = self._signing_keys.fit(one.mac, partial(seal, previous=chain.head, row=row))
            chain.step(row.number, chain.last + 1, one.mac, fits=fits)
            if fits and row.seq > self._ends.get(row.writer, 0):
                self._ends[row.writer] = row.seq
            if row.signer == TRAIL and row.number in self._wanted:
                self.signed[row.number] = one.mac

    def follow_cuts(self, removed: Iterable[Cut]) -> None:
        """Begin chains after their deleted entries. Call this before `follow` for entries that were read later."""
        for one in removed:
            self._chain(one.row.writer).begin_after_cut(one, is_signed=one.is_signed_by(self._cut_keys))
            self._batches.setdefault(one.row.revision, bytearray()).extend(one.signature)
            self._anchor_kinds.add(one.row.anchor)

    def follow(self, links: Iterable[Link]) -> None:
        """Verify the next entries."""
        for one in links:
            number, entry = one.row.seq, AuditId(one.row.id)
            chain = self._chain(one.row.writer)
            if one.row.kind == AuditKind.BREAK:
                chain.report(ChainFaultKind.BROKEN, number, entry)  # guard: audit-break-is-reported
            elif not chain.entries and not chain.cut and not self._may_begin(one):
                chain.report(ChainFaultKind.MISSING, 1, entry)
            chain.step(number, chain.last + 1, one.mac, fits=self._fits(chain.head, one), entry=entry)
            if one.is_contradicted:  # guard: audit-every-signature-counts
                chain.report(ChainFaultKind.CHANGED, number, entry)
            if one.row.writer == CATALOG:
                self._follow_reference(one)
                if one.row.action == ACTION:
                    self._follow_cut_entry(one)

    def anchor(self, found: StoredAnchor | None) -> Anchor:
        """State of the anchor. Call this after all entries were verified, and before `chains`."""
        if found is None:
            was_there = self._is_anchored or bool(self._anchor_kinds - {""})
            # guard: audit-anchor-missing
            return Anchor(state=AnchorState.MISSING if was_there else AnchorState.PENDING)
        row = found.row
        if not found.is_sealed_by(self._anchor_keys):  # guard: audit-anchor-seal
            return Anchor(state=AnchorState.CHANGED)
        if self.last_signature < row.number:  # guard: audit-anchor-length
            self._chain(_SIGNATURES).report(ChainFaultKind.SHORTENED, row.number)
        elif self.last_signature == row.number > 0 and self._chain(_SIGNATURES).head != row.head:
            self._chain(_SIGNATURES).report(ChainFaultKind.CHANGED, row.number)
        at = datetime.fromtimestamp(row.at_us / 1_000_000, UTC)
        is_replaced = row.kind == AnchorKind.ADOPTED and (self._is_anchored or AnchorKind.CREATED in self._anchor_kinds)
        state = AnchorState.BROKEN if is_replaced else AnchorState(row.kind)
        return Anchor(state=state, number=row.number, at=at)

    def chains(self, revision: int | None) -> Sequence[Chain]:
        """The verified chains. The chain of changes must reach `revision`, unless that is None (unknown).

        The caller must read the revision before the first entry.
        """
        reached = dict(self._ends)
        if revision is not None:  # the creation of a tenant is its first entry
            reached[CATALOG] = max(revision, reached.get(CATALOG, 0), 1)  # guard: audit-has-a-beginning
        for writer, number in reached.items():
            chain = self._chain(writer)
            if chain.last < number:  # guard: audit-signed-length
                chain.report(ChainFaultKind.SHORTENED, number)
        changes = self._chain(CATALOG)
        for number in self._batches:
            if changes.cut < number <= changes.last:  # guard: cut-has-an-entry
                changes.report(ChainFaultKind.CHANGED, number)
        return [chain.closed() for _, chain in sorted(self._chains_by_writer.items())]

    def _follow_reference(self, one: Link) -> None:
        """Report a fault unless the signature that a change's entry names is present and matches."""
        named = read_reference(one.row.digest)
        if named is None:
            return
        if one.row.action == CREATION:
            self._is_anchored = True
        if named.number <= 0 or one.row.seq > self._references.last:
            return  # written after the signatures were read
        signed = self.signed.get(named.number)
        if signed is None or not signed.startswith(named.head):  # guard: audit-changes-name-signatures
            kind = ChainFaultKind.SHORTENED if named.number > self.last_signature else ChainFaultKind.CHANGED
            self._chain(_SIGNATURES).report(kind, named.number)

    def _follow_cut_entry(self, one: Link) -> None:
        """Report a fault unless the stored records are those whose digest the entry of the cut contains."""
        found = hashlib.sha256(self._batches.pop(one.row.seq, b"")).hexdigest()
        if f'"digest":"{found}"' not in one.row.detail:  # guard: cut-records-complete
            self._chain(CATALOG).report(ChainFaultKind.CHANGED, one.row.seq, AuditId(one.row.id))

    def _chain(self, writer: str) -> _VerifiedChain:
        chain = self._chains_by_writer.get(writer)
        if chain is None:
            chain = self._chains_by_writer[writer] = _VerifiedChain(writer)
        return chain

    @staticmethod
    def _may_begin(one: Link) -> bool:
        """True if the entry may begin its chain: a chain of changes begins with the creation of its tenant."""
        return one.row.writer != CATALOG or one.row.action == CREATION  # guard: audit-begins-with-creation

    def _fits(self, previous: bytes, one: Link) -> bool:
        return self._keys.fit(one.mac, partial(link, previous=previous, row=one.row))


def is_authentic(keys: TrailKeys, one: Link, previous: bytes | None) -> bool:
    """True if a holder of the keys wrote the entry that follows the one with the MAC `previous`."""
    if previous is None:
        return False
    return _CandidateKeys(keys.chain).fit(one.mac, partial(link, previous=previous, row=one.row))


class _CandidateKeys:
    """The possible keys of a MAC; the key that matched last is tried first."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = list(keys)

    def fit(self, mac: bytes, make: Callable[[bytes], bytes]) -> bool:
        """True if one of the keys made the MAC."""
        for index, key in enumerate(self._keys):
            if hmac.compare_digest(make(key), mac):
                if index:  # the next entry is most likely under the same key
                    self._keys.insert(0, self._keys.pop(index))
                return True
        return False
