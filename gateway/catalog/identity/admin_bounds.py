"""Checks of the operator's bounds on a tenant's admins: the keys, issuers and roles that they may manage."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from gateway.catalog.transaction import Author
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.access import Role, may_concern
from gateway.domain.tenancy.ceilings import AdminBounds
from gateway.domain.tenancy.keys import Key, KeyState, Scope
from gateway.domain.tenancy.principals import Principal
from gateway.errors import Conflict, Fault, Forbidden, LimitExceeded
from gateway.store.engine import Db
from gateway.store.identity import keys
from gateway.store.kinds.keys import KEYS
from gateway.store.kinds.singletons import ACCESS, CEILINGS

_GRACE = timedelta(minutes=1)
"""Tolerance for a client's clock that is ahead."""
_ASK = "only the operator can change this (`gateway ceilings`)"


async def check_new_key(tenant: TenantId, db: Db, key: Key, *, by: Author) -> None:
    """Refuse a new key that a tenant's admin may not create.

    Raises:
        Forbidden: a scope may not be granted, or the key would last too long.
        LimitExceeded: the tenant has reached the number of keys that its admins may create.
    """
    if not isinstance(by.caller, Principal):
        return
    bounds = await _bounds(tenant, db)
    if bounds.keys is not None and await KEYS.count(tenant, db) >= bounds.keys:  # guard: delegated-keys
        raise LimitExceeded(f"the tenant is limited to {bounds.keys} keys; delete revoked or unused ones; {_ASK}")
    _check_scopes(bounds, key)
    _check_lifetime(bounds, key)


async def check_changed_key(tenant: TenantId, db: Db, before: Key, after: Key, *, by: Author) -> None:
    """Refuse a change or rotation of a key that a tenant's admin may not make.

    Raises:
        Forbidden: the key has a scope that may not be granted, or would last too long.
    """
    if not isinstance(by.caller, Principal):
        return
    bounds = await _bounds(tenant, db)
    _check_scopes(bounds, after)
    if after.expires_at != before.expires_at:
        _check_lifetime(bounds, after)


async def check_ended_key(tenant: TenantId, db: Db, key: Key, *, by: Author) -> None:
    """Refuse to end the tenant's last valid key with the scope `admin`, unless the operator ends it.

    Raises:
        Conflict: the key is the last one.
    """
    if not isinstance(by.caller, Principal) or Scope.ADMIN not in key.scopes or key.state is not KeyState.ACTIVE:
        return
    if not await keys.is_granted(tenant, db, Scope.ADMIN, besides=key.id):  # guard: last-owner
        raise Conflict(
            "this is the tenant's last key with the scope admin; create another one first, or rotate it if it is known"
            " to others"
        )


async def check_issuers(tenant: TenantId, db: Db, issuer: str, *, by: Author) -> None:
    """Refuse a tenant's admin who may not manage issuers, or who may not grant the roles of this issuer's people.

    Raises:
        Forbidden: the operator did not delegate this, or the admin cannot grant a role that depends on the issuer.
    """
    if not isinstance(by.caller, Principal):
        return
    if not (await _bounds(tenant, db)).issuers:  # guard: delegated-issuers
        raise Forbidden(f"the tenant's admins may not accept issuers; {_ASK}")
    roles = (await ACCESS.get(tenant, db)).roles
    # another issuer of this name would decide which people belong to the groups that have a role
    concerned = {rule.role for rule in roles if may_concern(rule, issuer)}  # guard: role-issuer
    await check_role_grant(tenant, db, concerned, by=by)


async def check_role_grant(tenant: TenantId, db: Db, roles: Collection[Role], *, by: Author) -> None:
    """Refuse an author who may not grant the scopes of these roles to a key, because the roles permit the same actions.

    Raises:
        Forbidden: the author lacks such a scope, or may not grant it.
    """
    if not isinstance(by.caller, Principal):
        return
    bounds = await _bounds(tenant, db)
    for role in sorted(roles):
        scope = role.scope
        if scope not in by.caller.scopes:  # guard: role-grant
            raise Forbidden(
                f"the role {role} is given by callers that have the scope {scope} themselves; ask the operator"
            )
        if bounds.scopes is not None and scope not in bounds.scopes:  # guard: role-delegated
            raise Forbidden(f"the tenant's admins may not grant {scope}; {_ASK}")


async def _bounds(tenant: TenantId, db: Db) -> AdminBounds:
    return (await CEILINGS.get(tenant, db)).admin_bounds


def _check_scopes(bounds: AdminBounds, key: Key) -> None:
    refused = [] if bounds.scopes is None else sorted(key.scopes - set(bounds.scopes))
    if refused:  # guard: delegated-scopes
        fault = Fault(pointer="/scopes", reason=f"the tenant's admins may not grant {', '.join(refused)}; {_ASK}")
        raise Forbidden(f"scopes: {fault.reason}", faults=[fault])


def _check_lifetime(bounds: AdminBounds, key: Key) -> None:
    if bounds.key_lifetime_s is None:
        return
    latest = datetime.now(UTC) + timedelta(seconds=bounds.key_lifetime_s) + _GRACE
    if key.expires_at is None or key.expires_at > latest:  # guard: delegated-lifetime
        reason = f"keys of this tenant end within {bounds.key_lifetime_s} seconds; give an earlier end; {_ASK}"
        raise Forbidden(f"expires_at: {reason}", faults=[Fault(pointer="/expires_at", reason=reason)])
