"""Access rules that a later release stored: read in the strictest sense, and never an error of the tenant."""

import json
from typing import Any

import pytest

from gateway.domain.tenancy.access import UNREADABLE, AccessEffect, AccessRule, AccessRules, Role, RoleRule
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.profiles import Rule
from gateway.store.engine import Store
from gateway.store.identity import keys
from gateway.store.kinds.singletons import ACCESS
from tests.integration.store.samples import Stored, store_everything
from tests.support.servers import TestDatabase, execute, fetch_value

WHAT = {"names": ["delete_*"]}
_NO_ONE = AccessRule(effect=AccessEffect.ALLOW, who=(), reason=UNREADABLE)
RULES: list[tuple[dict[str, Any], AccessRule]] = [
    ({"effect": "allow", "who": ["people"]}, AccessRule(effect=AccessEffect.ALLOW, who=("people",))),
    ({"effect": "allow", "who": ["keys", "team:blue"]}, _NO_ONE),
    ({"effect": "allow", "who": ["everyone"], "unless": ["team:blue"]}, _NO_ONE),
    ({"effect": "allow", "who": ["everyone"], "when": "night"}, _NO_ONE),
    ({"effect": "allow", "who": ["everyone"], "what": {"regions": ["eu"]}}, _NO_ONE),
    ({"effect": "allow", "who": "everyone"}, _NO_ONE),
    (
        {"effect": "deny", "who": ["team:red"], "unless": ["keys"], "what": WHAT},
        AccessRule(effect=AccessEffect.DENY, what=Rule(names=("delete_*",)), reason=UNREADABLE),
    ),
    (
        {"effect": "deny", "who": ["keys"], "what": {**WHAT, "regions": ["eu"]}},
        AccessRule(effect=AccessEffect.DENY, reason=UNREADABLE),
    ),
    ({"effect": "ask", "who": ["keys"]}, AccessRule(effect=AccessEffect.DENY, reason=UNREADABLE)),
    ({"effect": "deny", "what": 7}, AccessRule(effect=AccessEffect.DENY, reason=UNREADABLE)),
]
ROLES: list[tuple[dict[str, Any], bool]] = [
    ({"role": "approve", "who": ["group:corp:a"]}, True),
    ({"role": "operate", "who": ["people"]}, False),
    ({"role": "approve", "who": ["team:blue"]}, False),
    ({"role": "approve", "who": ["people"], "unless": ["team:blue"]}, False),
    ({"role": "approve", "who": ["people"], "until": "2030"}, False),
]


@pytest.fixture
async def acme(store: Store) -> Stored:
    """A tenant with access rules and a key."""
    return await store_everything(store, "acme")


async def test_rules_and_roles_of_a_later_release_are_read_in_the_strictest_sense(
    store: Store, acme: Stored, database: TestDatabase
) -> None:
    """Ours: an unknown permission permits nothing, an unknown denial denies, and rules keep their numbers (IDN-4)."""
    rules, roles = json.dumps([stored for stored, _ in RULES]), json.dumps([stored for stored, _ in ROLES])
    await execute(
        database.superuser_url,
        f"update access_rules set default_effect = 'ask', rules = '{rules}'::jsonb, roles = '{roles}'::jsonb",
    )
    async with store.transaction(acme.tenant.id) as db:
        access = await ACCESS.get(acme.tenant.id, db)
    assert access.default is AccessEffect.DENY
    for (stored, expected), read in zip(RULES, access.rules, strict=True):
        assert read == expected, stored
    for (given, is_known), role in zip(ROLES, access.roles, strict=True):
        wanted = RoleRule(role=Role.APPROVE, who=("group:corp:a",))
        assert role == (wanted if is_known else RoleRule(role=Role.AUDIT, who=(), reason=UNREADABLE)), given
    assert access.has_unreadable


async def test_a_role_without_a_limit_is_stored_as_before(store: Store, acme: Stored, database: TestDatabase) -> None:
    """Ours: a role of a release without limits stays one for that release; a limited one is none for it (IDN-4)."""
    limited = RoleRule(role=Role.ADMINISTER, who=("people",), kinds=("tool",))
    roles = (RoleRule(role=Role.AUDIT, who=("people",)), limited)
    async with store.transaction(acme.tenant.id) as db:
        await ACCESS.save(acme.tenant.id, db, AccessRules(roles=roles))
        assert (await ACCESS.get(acme.tenant.id, db)).roles == roles
    query = "select roles::text from access_rules where tenant_id = $1"
    stored = str(await fetch_value(database.superuser_url, query, acme.tenant.id))
    assert [set(one) for one in json.loads(stored)] == [
        {"role", "who", "unless", "reason"},
        {"role", "who", "unless", "reason", "kinds"},
    ]


async def test_a_key_with_a_scope_of_a_later_release_has_its_known_scopes(
    store: Store, acme: Stored, database: TestDatabase
) -> None:
    """Ours: an unknown scope permits nothing, and the key and the lists of its tenant stay usable (IDN-4)."""
    await execute(database.superuser_url, "update keys set scopes = '{mcp,operate}'")
    async with store.transaction(acme.tenant.id) as db:
        found = await keys.get(acme.tenant.id, db, acme.key.id)
    assert found is not None
    assert found.scopes == {Scope.MCP}
