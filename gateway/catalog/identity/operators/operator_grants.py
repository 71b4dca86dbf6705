"""Grants of the installation: the roles of people and workloads of its issuers."""

from collections.abc import Sequence
from dataclasses import replace

from gateway.catalog.identity.operators.operator_rights import check_rights, resolve_tenants, slugs_of
from gateway.catalog.kinds.engines.collection import Collection
from gateway.catalog.transaction import CatalogContext, OpenChanges
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.access import PEOPLE
from gateway.domain.tenancy.operators import OperatorGrant, OperatorGrantStatus
from gateway.errors import Fault, InvalidBody
from gateway.kinds.operators import OPERATOR_GRANT
from gateway.store.kinds.rows import rows_of


async def _complete(opened: OpenChanges, current: OperatorGrant | None, wanted: OperatorGrant) -> OperatorGrant:
    """Return the grant with the ids of the tenants to which it is limited."""
    del current
    return replace(wanted, tenants=await resolve_tenants(opened.db, wanted.tenants))


async def _check(opened: OpenChanges, current: OperatorGrant | None, wanted: OperatorGrant) -> None:
    del opened, current
    check_rights(wanted.rights)
    if PEOPLE in wanted.who:  # guard: operator-grant-named
        fault = Fault(pointer="/who", reason="must name subjects, groups or issuers, not all people of all issuers")
        raise InvalidBody(f"who: {fault.reason}", faults=[fault])


async def _status(
    tenant: TenantId, catalog: CatalogContext, found: Sequence[OperatorGrant]
) -> Sequence[OperatorGrantStatus]:
    async with catalog.store.transaction(tenant) as db:
        return [OperatorGrantStatus(tenants=one) for one in await slugs_of(db, [each.tenants for each in found])]


OPERATOR_GRANTS = Collection(
    kind=OPERATOR_GRANT, rows=rows_of(OPERATOR_GRANT), complete=_complete, check=_check, compute=_status
)
