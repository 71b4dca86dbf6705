"""Special functions of the access rules of a tenant and the roles of its people."""

from collections.abc import Iterator, Sequence

import msgspec

from gateway.catalog.identity.admin_bounds import check_role_grant
from gateway.catalog.identity.limits import MAX_ACCESS_RULES_BYTES, MAX_NAME_PATTERNS
from gateway.catalog.transaction import CatalogContext, OpenChanges
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.tenancy.access import (
    GROUP,
    ISSUER,
    KEY,
    SCOPE,
    AccessRules,
    Rights,
    Role,
    RoleRule,
    find_restricting_scopes,
    rights_of,
)
from gateway.domain.tenancy.principals import Principal
from gateway.errors import Conflict, Fault, InvalidBody
from gateway.kinds.manifests import MANIFEST_KINDS, kind_in_manifests
from gateway.kinds.singletons import ACCESS as ACCESS_KIND
from gateway.store.engine import Db, Store
from gateway.store.identity import issuers, keys
from gateway.store.kinds.live_sources import LIVE_SOURCES
from gateway.store.kinds.singletons import ACCESS
from gateway.store.sources import sources

LIMITING_KINDS = frozenset(
    kind_in_manifests(kind.name) for kind in MANIFEST_KINDS.values() if kind.writers and kind.name != ACCESS_KIND.name
)
"""The kinds to which a role can be limited: those of admins, without the access rules, which give roles."""


async def find_rights(tenant: TenantId, store: Store, principal: Principal) -> Rights:
    """The rights of a caller under the currently stored rules."""
    async with store.transaction(tenant) as db:
        return rights_of(await ACCESS.get(tenant, db), principal)


def check_scopes(access: AccessRules) -> AccessRules:
    """Return the rules if no scope in them takes primitives away, and roles are limited to known kinds.

    Raises:
        InvalidBody: a scope does, and a client would escape it by fewer scopes; or a role has another limit. The
            faults name the rules and roles.
    """
    faults: list[Fault] = [*_faults_of_kinds(access.roles)]
    for number, rule in enumerate(access.rules):
        restricting = find_restricting_scopes(rule.effect, rule.who, rule.unless)
        if restricting:  # guard: access-scope-permits
            reason = (
                f"{restricting[0]} would take primitives away, and a client escapes it by fewer scopes; name scopes in"
                " `who` of an allow rule or in `unless` of a deny rule"
            )
            faults.append(Fault(pointer=f"/rules/{number}", reason=reason))
    if faults:
        raise InvalidBody(f"{faults[0].pointer}: {faults[0].reason}", faults=faults)
    return access


def _faults_of_kinds(roles: Sequence[RoleRule]) -> Iterator[Fault]:
    for number, role in enumerate(roles):
        unknown = sorted({*role.kinds} - LIMITING_KINDS)
        if role.kinds and (role.role is not Role.ADMINISTER or unknown):  # guard: role-kinds-known
            reason = (
                f"{unknown[0]} is none of {', '.join(sorted(LIMITING_KINDS))}"
                if unknown
                else "limits `administer` only"
            )
            yield Fault(pointer=f"/roles/{number}/kinds", reason=reason)


async def check_access(opened: OpenChanges, current: AccessRules, wanted: AccessRules) -> None:
    """Refuse rules that cannot be stored, and roles that the author may not grant.

    Raises:
        InvalidBody: the rules are too large.
        Conflict: the new rules repeat one that this release cannot read.
        Forbidden: roles change, and the author may not grant them.
    """
    if wanted.has_unreadable:  # guard: access-unreadable-kept
        raise Conflict("a later release stored some of the rules or roles; change them there, or send all of both")
    check_size(wanted)
    changed = {rule.role for rule in {*wanted.roles} ^ {*current.roles}}
    await check_role_grant(opened.tenant, opened.db, changed, by=opened.by)


def check_size(access: AccessRules) -> None:
    """Refuse rules whose evaluation or storage would cost too much.

    Raises:
        InvalidBody: the rules have too many bytes or patterns.
    """
    reason = ""
    if sum(len(rule.what.names) for rule in access.rules) > MAX_NAME_PATTERNS:  # guard: access-patterns
        reason = f"the rules together have more than {MAX_NAME_PATTERNS} names; use sources, tags or profiles"
    elif len(msgspec.json.encode((access.rules, access.roles))) > MAX_ACCESS_RULES_BYTES:
        reason = f"the rules and roles together have more than {MAX_ACCESS_RULES_BYTES} bytes"
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
            if await sources.get(tenant, db, name) is None and await LIVE_SOURCES.get(tenant, db, name) is None
        ]
    )
