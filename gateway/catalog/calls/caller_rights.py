"""Permission of a key to call, checked when an approved call runs, because the key may have changed meanwhile."""

from datetime import UTC, datetime

from gateway.catalog.calls.approval_changes import OPERATOR
from gateway.domain.identifiers import KeyId, TenantId, is_grant_id
from gateway.domain.tenancy.keys import Scope
from gateway.store.engine import Db
from gateway.store.identity import grants, keys, people


async def may_call(tenant: TenantId, db: Db, key: KeyId) -> bool:
    """True for the operator, and for a valid key with `mcp`.

    Without this check, an owner could try calls with a new key.
    """
    find = grants.credential if is_grant_id(key) else keys.get
    found = None if key == OPERATOR else await find(tenant, db, key)
    if found is None or Scope.MCP not in found.scopes:  # guard: approval-key-calls
        return key == OPERATOR
    if await people.is_denied(tenant, db, found.principal):  # guard: approval-person-denied
        return False
    return found.revoked_at is None and (found.expires_at is None or found.expires_at > datetime.now(UTC))
