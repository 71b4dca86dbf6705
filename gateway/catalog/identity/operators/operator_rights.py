"""Checks of the rights that operator keys and grants give, and the tenants to which they are limited."""

from collections.abc import Sequence

from gateway.catalog.identity.access_rules import LIMITING_KINDS
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.operators import OperatorRights, OperatorRole
from gateway.errors import Fault, InvalidBody, ReferenceMissing
from gateway.store import tenants
from gateway.store.engine import Db


async def resolve_tenants(db: Db, named: Sequence[str] | None) -> tuple[str, ...] | None:
    """The sorted ids of the tenants with these slugs or ids, because a slug may later be another tenant's.

    Raises:
        ReferenceMissing: there is no such tenant; the fault names its place.
    """
    if named is None:
        return None
    known = await tenants.slugs(db, named)
    found: set[str] = set()
    for index, name in enumerate(named):
        tenant = None if name in known else await tenants.find(db, name)
        if name not in known and tenant is None:
            fault = Fault(pointer=f"/tenants/{index}", reason="there is no such tenant")
            raise ReferenceMissing(f"{fault.pointer}: {fault.reason}", faults=[fault])
        found.add(name if tenant is None else TenantId(tenant.id))
    return tuple(sorted(found))


async def slugs_of(db: Db, limits: Sequence[Sequence[str] | None]) -> Sequence[tuple[str, ...] | None]:
    """The sorted slugs of the tenants to which each of several roles is limited; the id of a deleted one."""
    wanted = {one for each in limits for one in each or ()}
    slugs = await tenants.slugs(db, wanted)
    return [None if each is None else tuple(sorted(slugs.get(one, one) for one in each)) for each in limits]


def check_rights(rights: OperatorRights) -> None:
    """Refuse limits that the role does not have.

    Raises:
        InvalidBody: it has some; the fault names the member.
    """
    if rights.role is OperatorRole.CREATOR and rights.tenants is not None:
        raise _fault("/tenants", "a creator administers the tenants that it has created; leave it out")
    if rights.kinds is None:
        return
    if rights.role is not OperatorRole.ADMINISTRATOR:
        raise _fault("/kinds", "only the role administrator is limited to kinds")
    if unknown := sorted({*rights.kinds} - LIMITING_KINDS):
        raise _fault("/kinds", f"{unknown[0]} is none of {', '.join(sorted(LIMITING_KINDS))}")


def _fault(pointer: str, reason: str) -> InvalidBody:
    return InvalidBody(f"{pointer}: {reason}", faults=[Fault(pointer=pointer, reason=reason)])
