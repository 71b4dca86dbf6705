"""The access rules of a tenant and the roles of its people, which are replaced as a unit."""

from collections.abc import Callable

import msgspec

from gateway.catalog.etags import Expected, check_version
from gateway.catalog.identity.admin_bounds import check_role_grant
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, change
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.tenancy.access import GROUP, ISSUER, KEY, SCOPE, AccessRules, Role, roles_of
from gateway.domain.tenancy.principals import Principal
from gateway.errors import Conflict, Fault, InvalidBody
from gateway.store.engine import Db, Store
from gateway.store.identity import access_rules, issuers, keys
from gateway.store.live import live_sources
from gateway.store.sources import sources

_MAX_RULES_BYTES = 128 * 1024
_MAX_PATTERNS = 1000
"""Limit on the patterns of names of all rules: each is compared with each primitive whenever a snapshot is loaded."""


async def get_access(tenant: TenantId, catalog: CatalogContext) -> AccessRules:
    """The tenant's access rules."""
    async with catalog.store.transaction(tenant) as db:
        return await access_rules.get(tenant, db)


async def find_roles(tenant: TenantId, store: Store, principal: Principal) -> frozenset[Role]:
    """The roles of a caller under the currently stored rules."""
    async with store.transaction(tenant) as db:
        return roles_of(await access_rules.get(tenant, db), principal)


async def replace_access(
    tenant: TenantId,
    catalog: CatalogContext,
    revise: Callable[[AccessRules], AccessRules],
    *,
    by: Author,
    expected: Expected = None,
) -> AccessRules:
    """Replace the tenant's access rules with those that `revise` returns for the stored ones.

    The next catalog revision applies the new rules. The audit entry contains the difference.

    Raises:
        InvalidBody: the rules are too large.
        Conflict: the new rules repeat one that this release cannot read.
        Forbidden: roles change, and the author may not grant them.
        PreconditionFailed: the current version matches no expected tag.
    """
    entry = CatalogChange(action="access.update", target="access")
    async with change(tenant, catalog, entry, by=by) as db:
        current = await access_rules.get(tenant, db)
        check_version(current, expected)
        access = revise(current)
        if access.has_unreadable:  # guard: access-unreadable-kept
            raise Conflict("a later release stored some of the rules or roles; change them there, or send all of both")
        check_size(access)
        await check_role_grant(tenant, db, {rule.role for rule in {*access.roles} ^ {*current.roles}}, by=by)
        entry.before, entry.after = current, access
        return await access_rules.save(tenant, db, access)


def check_size(access: AccessRules) -> None:
    """Refuse rules whose evaluation or storage would cost too much.

    Raises:
        InvalidBody: the rules have too many bytes or patterns.
    """
    reason = ""
    if sum(len(rule.what.names) for rule in access.rules) > _MAX_PATTERNS:  # guard: access-patterns
        reason = f"the rules together have more than {_MAX_PATTERNS} names; use sources, tags or profiles"
    elif len(msgspec.json.encode((access.rules, access.roles))) > _MAX_RULES_BYTES:
        reason = f"the rules and roles together have more than {_MAX_RULES_BYTES} bytes"
    if reason:
        raise InvalidBody(f"/rules: {reason}", faults=[Fault(pointer="/rules", reason=reason)])


async def find_unknown(tenant: TenantId, catalog: CatalogContext, access: AccessRules) -> frozenset[str]:
    """Return the entries of the rules that name a key or an issuer that the tenant does not have."""
    async with catalog.store.transaction(tenant) as db:
        return await find_unknown_entries(tenant, db, access)


async def find_unknown_entries(tenant: TenantId, db: Db, access: AccessRules) -> frozenset[str]:
    """Like `find_unknown`, within the caller's transaction."""
    unknown: set[str] = set()
    entry_lists = [(*rule.who, *rule.unless) for rule in access.rules] + [
        (*one.who, *one.unless) for one in access.roles
    ]
    for entry in sorted({entry for entries in entry_lists for entry in entries}):
        if entry.startswith(KEY):
            is_known = await keys.get(tenant, db, KeyId(entry.removeprefix(KEY))) is not None
        elif entry.startswith((GROUP, ISSUER, SCOPE)):
            name = entry.split(":")[1]
            issuer = await issuers.get(tenant, db, name)
            is_known = issuer is not None and issuer.name == name  # no caller has an entry with the id
        else:
            continue
        unknown |= set() if is_known else {entry}
    return frozenset(unknown)


async def find_missing_sources(tenant: TenantId, db: Db, access: AccessRules) -> frozenset[str]:
    """Return the sources that the rules name but the tenant does not have."""
    source_names = {name for rule in access.rules for name in rule.what.sources}
    return frozenset(
        [
            name
            for name in sorted(source_names)
            if await sources.get(tenant, db, name) is None and await live_sources.get(tenant, db, name) is None
        ]
    )
