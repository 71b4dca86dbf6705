"""Allow-lists of private upstreams that the operator sets per tenant, and the TLS check of configured URLs.

Like the policy, the list belongs to a catalog revision: each snapshot contains the list of its revision.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from gateway.catalog.origins import find_origin
from gateway.catalog.snapshots.snapshots import Snapshots
from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.egress import Egress
from gateway.errors import EgressDenied, Fault, InvalidBody, NotFound, Unavailable
from gateway.store.engine import Store
from gateway.store.kinds.singletons import EGRESS
from gateway.upstream.egress.addresses import read_address
from gateway.upstream.egress.allow_list import FORM, NOTHING, AllowList, read_entry, read_stored, write_entry


def normalise_egress(wanted: Egress) -> Egress:
    """Return the allow-list with canonical entries, sorted, without duplicates.

    Raises:
        InvalidBody: an entry is not an exact `host:port`.
    """
    read = [read_entry(text) for text in wanted.allow]
    faults = [Fault(pointer=f"/allow/{index}", reason=FORM) for index, entry in enumerate(read) if entry is None]
    if faults:
        raise InvalidBody(f"{faults[0].pointer}: {FORM}", faults=faults)
    return replace(wanted, allow=tuple(sorted({write_entry(entry) for entry in read if entry is not None})))


@dataclass(frozen=True, slots=True)
class StoredAllowLists:
    """Allow-lists of tenants for the egress guard: from the current snapshot, else from the database.

    This class caches nothing. A list is as old as the tenant's snapshot, which each replica replaces when it notices a
    newer revision. A tenant without a snapshot, such as one that only has watches, costs one query per read.
    """

    store: Store
    snapshots: Snapshots

    def current(self, tenant: TenantId) -> AllowList | None:
        """The list of the current snapshot; None without a snapshot, or if a newer revision may exist."""
        snapshot = self.snapshots.current(tenant)
        return None if snapshot is None else snapshot.egress  # guard: egress-own-list

    async def read(self, tenant: TenantId) -> AllowList:
        """The newest list; empty for a removed tenant, and while only an outdated snapshot is available.

        Raises:
            Unavailable: the database is unreachable, and the snapshot is missing or too old.
        """
        if not self.snapshots.newest(tenant):
            return await self._stored(tenant)
        try:
            snapshot = await self.snapshots.latest(tenant)
        except NotFound:
            return NOTHING
        if snapshot.revision >= self.snapshots.newest(tenant):  # guard: egress-outdated-list
            return snapshot.egress
        # The catalog changed during the load, or the database is unreachable and calls use an outdated snapshot, whose
        # list may contain withdrawn permissions.
        with suppress(Unavailable):
            return await self._stored(tenant)
        return NOTHING

    async def _stored(self, tenant: TenantId) -> AllowList:
        async with self.store.transaction(tenant) as db:
            return read_stored((await EGRESS.get(tenant, db)).allow)


async def require_tls(tenant: TenantId, catalog: CatalogContext, url: str, pointer: str) -> None:
    """Refuse a URL without TLS, unless the operator's or the tenant's list contains its host and port.

    Raises:
        InvalidBody: the URL is not absolute, or neither https nor permitted; the fault contains `pointer`.
    """
    if find_origin(url) is None:
        raise refusal(pointer, "must be an absolute https URL")
    parts = urlsplit(url)
    if parts.scheme == "https":
        return
    host = (parts.hostname or "").lower()
    try:
        entry = (read_address(host) or host, parts.port or 80)
        await catalog.upstream.check_listed(entry, tenant=tenant)  # guard: url-tls
    except EgressDenied:
        raise refusal(pointer, "must be https; http requires a host that the operator permits") from None


def refusal(pointer: str, reason: str) -> InvalidBody:
    """Return the error for one invalid member."""
    return InvalidBody(f"{pointer or 'the body'}: {reason}", faults=[Fault(pointer=pointer, reason=reason)])
