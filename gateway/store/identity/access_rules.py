"""A tenant's access rules, stored as one row.

A rule that a later release stored, with a member or value that this one does not know, is read in the strictest sense:
an allow rule and a role have no effect, and a deny rule is for everyone.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

import msgspec
from sqlalchemy import bindparam, func, select
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.access import (
    OPEN,
    UNREADABLE,
    AccessEffect,
    AccessRule,
    AccessRules,
    Role,
    RoleRule,
    is_entry,
)
from gateway.domain.tenancy.profiles import Rule
from gateway.store.engine import Db
from gateway.store.identity.tables import access_rules

R = TypeVar("R", AccessRule, RoleRule, Rule)

_OF_TENANT = select(access_rules).where(access_rules.c.tenant_id == bindparam("tenant"))


async def get(tenant: TenantId, db: Db) -> AccessRules:
    """The tenant's access rules; without a row, rules that permit everything."""
    rows = await db.execute(_OF_TENANT, {"tenant": tenant})
    row = rows.mappings().one_or_none()
    if row is None:
        return OPEN
    is_open = row["default_effect"] == AccessEffect.ALLOW  # guard: access-unknown-default
    return AccessRules(
        default=AccessEffect.ALLOW if is_open else AccessEffect.DENY,
        rules=tuple(_read_rule(stored) for stored in row["rules"]),
        roles=tuple(_read_role(stored) for stored in row["roles"]),
        version=row["version"],
    )


def _read_rule(stored: Mapping[str, Any]) -> AccessRule:
    """Return a rule; one that this release cannot read keeps its place, so that the numbers of rules stay the same."""
    rule, what = _read(stored, AccessRule), _read(stored.get("what", {}), Rule)
    if rule is not None and what is not None and _knows_entries(rule):
        return rule
    if stored.get("effect") == AccessEffect.ALLOW:
        return AccessRule(effect=AccessEffect.ALLOW, who=(), reason=UNREADABLE)
    return AccessRule(effect=AccessEffect.DENY, what=what or Rule(), reason=UNREADABLE)


def _read_role(stored: Mapping[str, Any]) -> RoleRule:
    rule = _read(stored, RoleRule)
    return rule if rule and _knows_entries(rule) else RoleRule(role=Role.AUDIT, who=(), reason=UNREADABLE)


def _knows_entries(rule: AccessRule | RoleRule) -> bool:
    return all(map(is_entry, (*rule.who, *rule.unless)))  # guard: access-unknown-entries


def _read(stored: Mapping[str, Any], kind: type[R]) -> R | None:
    """Return a stored object; None if it has a member or value that this release does not know."""
    try:
        found = msgspec.convert(stored, kind)
    except msgspec.ValidationError:
        return None
    is_known = stored.keys() <= {each.name for each in fields(kind)}  # guard: access-unknown-members
    return found if is_known else None


async def save(tenant: TenantId, db: Db, access: AccessRules) -> AccessRules:
    """Replace the tenant's access rules, and return them with their new version.

    Raises:
        NotFound: there is no such tenant.
    """
    columns = {
        "default_effect": access.default.value,
        "rules": msgspec.to_builtins(access.rules),
        "roles": msgspec.to_builtins(access.roles),
        "updated_at": func.now(),
    }
    # A tenant without a row has version 1, so its first row is version 2.
    first = insert_into(access_rules).values(tenant_id=tenant, version=OPEN.version + 1, **columns)
    written = first.on_conflict_do_update(
        index_elements=[access_rules.c.tenant_id], set_={**columns, "version": access_rules.c.version + 1}
    )
    version = (await db.execute(written.returning(access_rules.c.version))).scalar_one()
    return replace(access, version=int(version))
