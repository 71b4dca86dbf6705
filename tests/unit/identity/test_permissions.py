"""Permissions of a caller in a tenant."""

import pytest

from gateway.domain.identifiers import KeyId
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.principals import Operator, Principal
from gateway.errors import Forbidden, NotFound
from gateway.identity.permissions import require
from tests.support.ids import new_tenant_id

TENANT = new_tenant_id()


def _caller(*scopes: Scope) -> Principal:
    return Principal(tenant=TENANT, slug="acme", key=KeyId("key_1"), subject="s", scopes=frozenset(scopes))


def test_an_operator_may_do_everything() -> None:
    """Ours: the operator key has every scope in every tenant."""
    require(Operator(), TENANT, *Scope)


def test_a_scope_lets_its_holder_pass() -> None:
    """Ours: a key has the permissions of its scopes."""
    require(_caller(Scope.ADMIN, Scope.AUDIT), TENANT, Scope.ADMIN, Scope.AUDIT)
    require(_caller(Scope.MCP), TENANT)


@pytest.mark.parametrize("held", [(), (Scope.MCP,), (Scope.AUDIT,)])
def test_a_missing_scope_is_forbidden(held: tuple[Scope, ...]) -> None:
    """Ours: every scope asked for is needed."""
    with pytest.raises(Forbidden, match="admin"):
        require(_caller(*held), TENANT, Scope.ADMIN, Scope.AUDIT)


def test_a_foreign_tenant_is_not_found() -> None:
    """Ours: a foreign tenant and no tenant look alike, for all scopes (TEN-1)."""
    with pytest.raises(NotFound) as refused:
        require(_caller(*Scope), new_tenant_id(), Scope.ADMIN)

    assert refused.value.message == "not found"
