"""Whether a tenant's trail is as it was written: each entry follows from the one before, and no chain ends early.

Whoever has the database but not the keys is found out: an entry that was changed or put in does not fit its MAC, one
that was taken out leaves a gap in the numbers. The end of the chain of changes is known by the tenant's revision, every
end by the signatures that were made since. What nobody has signed yet is known to whoever kept an earlier result.
"""

import hmac
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from gateway.domain.audit import SIGNERS, Chain, ChainFault, ChainFaultKind
from gateway.domain.identifiers import AuditId
from gateway.store.audit_chain import CATALOG, START, Link, link
from gateway.store.audit_heads import End, Signature, seal


@dataclass(slots=True)
class _Walked:
    """One chain as far as it was followed."""

    writer: str
    entries: int = 0
    first: int = 0
    last: int = 0
    head: bytes = START
    faults: int = 0
    fault: ChainFault | None = None

    def report(self, kind: ChainFaultKind, number: int, entry: AuditId | None = None) -> None:
        """One more fault; the first is remembered."""
        self.faults += 1
        self.fault = self.fault or ChainFault(kind=kind, number=number, entry=entry)

    def step(self, number: int, expected: int, mac: bytes, *, fits: bool, entry: AuditId | None = None) -> None:
        """The next entry, which does or does not follow from the one before."""
        if number > expected:
            self.report(ChainFaultKind.MISSING, expected, entry)
        elif number < expected or not fits:
            self.report(ChainFaultKind.CHANGED, number, entry)
        if not self.entries:
            self.first = number
        self.entries += 1
        self.last = number
        self.head = mac

    def closed(self) -> Chain:
        """The chain as a result."""
        return Chain(
            writer=self.writer,
            entries=self.entries,
            first=self.first,
            last=self.last,
            head=self.head,
            faults=self.faults,
            fault=self.fault,
        )


class TrailCheck:
    """Follows the chains of one tenant: first the signatures, then the entries, each part by part, in their order."""

    def __init__(self, chain_keys: Sequence[bytes], *, signing_keys: Sequence[bytes] = ()) -> None:
        self._keys = _Keys(chain_keys)
        self._signing_keys = _Keys(signing_keys)
        self._walked: dict[str, _Walked] = {}
        self._signed: dict[str, End] = {}

    def follow_signatures(self, signatures: Iterable[Signature]) -> None:
        """Verify the next signatures, and keep what they say."""
        for one in signatures:
            row = one.row
            chain = self._chain(SIGNERS + row.signer)
            fits = self._signing_keys.fit(one.mac, partial(seal, previous=chain.head, row=row))
            chain.step(row.number, chain.last + 1, one.mac, fits=fits)
            known = self._signed.get(row.writer)
            if fits and (known is None or row.seq > known.seq):
                self._signed[row.writer] = End(row.writer, row.seq, row.head)

    def follow(self, links: Iterable[Link]) -> None:
        """Verify the next entries."""
        for one in links:
            number, entry = one.row.seq, AuditId(one.row.id)
            chain = self._chain(one.row.writer)
            expected = chain.last + 1 if chain.entries else self._first_number(one)
            chain.step(number, expected, one.mac, fits=self._fits(chain.head, one), entry=entry)
            signed = self._signed.get(one.row.writer)
            if signed is not None and signed.seq == number and signed.head != one.mac:
                chain.report(ChainFaultKind.CHANGED, number, entry)

    def chains(self, revision: int | None) -> Sequence[Chain]:
        """What was found. The chain of changes reaches to `revision`, read before the first entry; None: unknown."""
        reached = {writer: end.seq for writer, end in self._signed.items()}
        if revision is not None:
            reached[CATALOG] = max(revision, reached.get(CATALOG, 0))
        for writer, number in reached.items():
            chain = self._chain(writer)
            if chain.last < number:
                chain.report(ChainFaultKind.SHORTENED, number)
        return [chain.closed() for _, chain in sorted(self._walked.items())]

    def _chain(self, writer: str) -> _Walked:
        chain = self._walked.get(writer)
        if chain is None:
            chain = self._walked[writer] = _Walked(writer)
        return chain

    def _first_number(self, one: Link) -> int:
        """A chain of calls counts from 1; one of changes may begin with any revision, if that was its beginning."""
        if one.row.writer == CATALOG and self._fits(START, one):
            return one.row.seq
        return 1

    def _fits(self, previous: bytes, one: Link) -> bool:
        return self._keys.fit(one.mac, partial(link, previous=previous, row=one.row))


class _Keys:
    """The keys that may have made a MAC, the likeliest first."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = list(keys)

    def fit(self, mac: bytes, make: Callable[[bytes], bytes]) -> bool:
        """Whether one of them has made it."""
        for place, key in enumerate(self._keys):
            if hmac.compare_digest(make(key), mac):
                if place:  # the next entry is most likely under the same key
                    self._keys.insert(0, self._keys.pop(place))
                return True
        return False
