"""Kinds of the installation: the keys of its operators, and the grants for people and workloads."""

from gateway.domain.tenancy.operators import (
    OperatorGrant,
    OperatorGrantStatus,
    OperatorKey,
    OperatorKeyStatus,
    OperatorRole,
)
from gateway.kinds.kind import Kind, Limit, ListFilter

OPERATOR_KEY = Kind(
    of=OperatorKey,
    stem="OperatorKey",
    name="operator_key",
    plural="operator-keys",
    id_prefix="key",
    about="a named key for the admin API, with a role in the installation",
    limit=Limit(most=200, reason="one for each person or program of a platform team; a replica reads all of them"),
    name_about="Unique in the installation; audit entries have it.",
    sorts=("name", "created_at"),
    example={
        "name": "ci",
        "role": "administrator",
        "tenants": ["acme"],
        "kinds": ["profile", "source"],
        "expires_at": "2035-01-31T00:00:00Z",
    },
    texts=lambda one: (one.name, one.id),
    filters={
        "role": ListFilter(type=OperatorRole, about="Only keys with this role.", value=lambda one: one.role),
    },
    status=OperatorKeyStatus,
    writers=frozenset(),  # guard: operator-keys-of-administrators
    is_operators=True,
    generates="The key; it is returned only once.",
    rotation="The previous one is refused at once.",
)

OPERATOR_GRANT = Kind(
    of=OperatorGrant,
    stem="OperatorGrant",
    name="operator_grant",
    plural="operator-grants",
    id_prefix="ogr",
    about="a role in the installation for people and workloads of its issuers",
    limit=Limit(most=200, reason="a group needs one; a replica reads all of them"),
    name_about="Unique in the installation.",
    sorts=("name", "created_at"),
    example={
        "name": "deployments",
        "role": "administrator",
        "who": ["subject:ci:repo:acme/infra:ref:refs/heads/main"],
        "tenants": ["acme"],
        "kinds": ["profile", "source"],
    },
    texts=lambda one: (one.name, *one.who, *one.unless),
    filters={
        "role": ListFilter(type=OperatorRole, about="Only grants of this role.", value=lambda one: one.role),
    },
    status=OperatorGrantStatus,
    writers=frozenset(),  # guard: operator-grants-of-administrators
    is_operators=True,
)
