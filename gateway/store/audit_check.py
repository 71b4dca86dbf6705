"""Whether a tenant's trail is as it was written: each entry follows from the one before, and no chain ends early.

Whoever has the database but not the keys is found out: an entry that was changed or put in does not fit its MAC, one
that was taken out leaves a gap in the numbers. The end of the chain of changes is known by the tenant's revision. The
ends of the other chains are known to whoever kept an earlier result.
"""

import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gateway.domain.audit import Chain, ChainFault, ChainFaultKind
from gateway.domain.identifiers import AuditId
from gateway.store.audit_chain import CATALOG, START, Link, link


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
    """Follows the chains of one tenant, fed with `audit.links` part by part, in their order."""

    def __init__(self, chain_keys: Sequence[bytes]) -> None:
        self._keys = list(chain_keys)
        self._walked: dict[str, _Walked] = {}

    def follow(self, links: Iterable[Link]) -> None:
        """Verify the next entries."""
        for one in links:
            writer = one.row.writer
            chain = self._walked.get(writer)
            if chain is None:
                chain = self._walked[writer] = _Walked(writer)
            self._step(chain, one)

    def chains(self, revision: int | None) -> Sequence[Chain]:
        """What was found. The chain of changes reaches to `revision`, read before the first entry; None: unknown."""
        if revision is not None:
            changes = self._walked.setdefault(CATALOG, _Walked(CATALOG))
            if changes.last < revision:
                changes.report(ChainFaultKind.SHORTENED, revision)
        return [chain.closed() for _, chain in sorted(self._walked.items())]

    def _step(self, chain: _Walked, one: Link) -> None:
        number, entry = one.row.seq, AuditId(one.row.id)
        is_first = not chain.entries
        expected = self._first_number(one) if is_first else chain.last + 1
        if number > expected:
            chain.report(ChainFaultKind.MISSING, expected, entry)
        elif number < expected or not self._fits(chain.head, one):
            chain.report(ChainFaultKind.CHANGED, number, entry)
        if is_first:
            chain.first = number
        chain.entries += 1
        chain.last = number
        chain.head = one.mac

    def _first_number(self, one: Link) -> int:
        """A chain of calls counts from 1; one of changes may begin with any revision, if that was its beginning."""
        if one.row.writer == CATALOG and self._fits(START, one):
            return one.row.seq
        return 1

    def _fits(self, previous: bytes, one: Link) -> bool:
        for place, key in enumerate(self._keys):
            if hmac.compare_digest(link(key, previous, one.row), one.mac):
                if place:  # the next entry is most likely under the same key
                    self._keys.insert(0, self._keys.pop(place))
                return True
        return False
