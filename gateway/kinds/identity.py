"""Tenants, and the kinds of principals within them."""

from dataclasses import replace
from typing import Any

from gateway.domain.tenancy.grants import ClientKind, OAuthClient
from gateway.domain.tenancy.issuers import Issuer, IssuerStatus, ManagedIssuer
from gateway.domain.tenancy.keys import Key, KeyState, KeyStatus, Scope
from gateway.domain.tenancy.tenants import Tenant, TenantStatus
from gateway.kinds.kind import Kind, Limit, ListFilter

MAX_ISSUERS = 10
"""Limit on the issuers of one tenant."""

TENANT = Kind(
    of=Tenant,
    stem="Tenant",
    name="tenant",
    plural="tenants",
    id_prefix="ten",
    about="an isolated customer, which owns all other objects",
    limit=None,
    keyed="slug",
    address="t",
    sorts=("slug", "name", "created_at"),
    example={"slug": "acme", "name": "Acme Ltd"},
    texts=lambda one: (one.slug, one.name),
    status=TenantStatus,
    writers=frozenset(),  # guard: tenants-of-the-operator
    is_operators=True,
    actions={"update": "tenant.rename"},
)

KEY = Kind(
    of=Key,
    stem="Key",
    name="key",
    plural="keys",
    id_prefix="key",
    about="an API key of a client, an administrator or another system",
    limit=Limit(most=1000, reason="one for each client and person of a tenant, revoked ones included"),
    keyed="id",
    address="id",
    example={"name": "agent", "scopes": ["mcp"], "expires_at": "2030-01-31T12:00:00Z"},
    texts=lambda one: (one.name, one.subject, *one.makers),
    filters={
        "scope": ListFilter(type=Scope, about="Only keys with this scope.", value=lambda one: one.scopes),
        "state": ListFilter(type=KeyState, about="Only keys in this state.", value=lambda one: one.state),
        "profile": ListFilter(
            type=str, about="Only keys that are bound to this profile.", value=lambda one: one.profile, most=200
        ),
    },
    status=KeyStatus,
    flat_status=("state", "revoked_at", "made_by", "old_secret_until", "last_used_at"),
    generates="The key; it is returned only once and not stored.",
    generated_as="key",
    rotation="The key keeps its id and subject; the old secret expires now, or after an overlap.",
    is_protected=True,
)

ISSUER = Kind(
    has_collection=False,
    of=Issuer,
    stem="Issuer",
    name="issuer",
    plural="issuers",
    id_prefix="iss",
    about="an authorization server whose access tokens the tenant accepts",
    limit=Limit(most=MAX_ISSUERS, reason="each sign-in reads all of them"),
    name_about="Unique in the tenant; the prefix of subjects.",
    example={
        "name": "corp",
        "url": "https://login.example",
        "rules": [{"group": "engineers"}, {"scope": "tools", "profiles": ["default"]}],
        "enabled": False,
        "sign_in": {"client_id": "mcp-gateway", "client_secret": "a-secret", "scopes": ["openid", "profile"]},
        "introspection": {"client_id": "mcp-gateway", "client_secret": "a-secret", "tokens": "jwt", "cache_s": 10},
    },
    texts=lambda one: (one.name, one.url),
    filters={
        "enabled": ListFilter(
            type=bool,
            about="Only issuers that are enabled (true) or disabled (false).",
            value=lambda one: one.enabled,
        )
    },
    status=IssuerStatus,
    is_protected=True,
)

MANAGED_ISSUER: Kind[Any] = replace(ISSUER, of=ManagedIssuer)
"""An issuer in requests and manifests: with the gateway's clients at it and their secrets."""

CLIENT = Kind(
    of=OAuthClient,
    stem="Client",
    name="client",
    plural="clients",
    id_prefix="cli",
    about="an application that signs people in at the tenant's authorization server",
    limit=Limit(most=200, reason="one for each application that administrators register"),
    keyed="id",
    address="id",
    example={"name": "Reports", "redirect_uris": ["https://reports.example/callback"], "confidential": True},
    texts=lambda one: (one.name, one.id, *one.redirect_uris),
    filters={
        "kind": ListFilter(type=ClientKind, about="Only clients of this kind.", value=lambda one: one.status.kind)
    },
    generates="The client's secret; it is returned only once. Null for a client without one.",
    has_secret=lambda one: one.confidential,
    rotation="The previous one is refused at once.",
    is_protected=True,
)
