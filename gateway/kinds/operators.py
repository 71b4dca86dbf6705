"""Kinds of the installation: the keys of its operators."""

from gateway.domain.tenancy.operators import OperatorKey, OperatorKeyStatus, OperatorRole
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
