"""Access of one person to a gateway on this machine: a tenant, and a key for its MCP clients in the data folder."""

from dataclasses import replace
from pathlib import Path

from gateway.app.local.key_file import read_key, write_key
from gateway.catalog.identity.keys import KeyDraft, create_key
from gateway.catalog.tenants import create_tenant, find_tenant
from gateway.catalog.transaction import Author, CatalogContext
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.policy import LOCAL_POLICY, read_decisions
from gateway.domain.tenancy.principals import Operator, Principal
from gateway.errors import NotFound, Unauthenticated
from gateway.identity.authenticator import Authenticator

_AUTHOR = Author(caller=Operator(name="start"), correlation_id="start")


async def ensure_access(catalog: CatalogContext, credentials: Authenticator, *, slug: str, folder: Path) -> str:
    """Create the tenant unless it exists; return its valid key from the folder, or a new one that is stored there.

    A new tenant has the decisions of a gateway for one person, in place of those for new tenants.

    Raises:
        LimitExceeded: the tenant has too many keys.
    """
    try:
        tenant = await find_tenant(catalog, slug)
    except NotFound:
        options = replace(catalog.options, tenant_policy=read_decisions(LOCAL_POLICY))
        tenant = await create_tenant(replace(catalog, options=options), slug, slug, by=_AUTHOR)
    kept_in = folder / f"{slug}-key"
    stored = read_key(kept_in)
    if stored is not None and await _is_valid(credentials, stored, slug):
        return stored
    draft = KeyDraft(name="program", scopes=frozenset({Scope.MCP}))
    _, minted = await create_key(tenant.id, catalog, draft, by=_AUTHOR)
    write_key(kept_in, minted.text)
    return minted.text


async def _is_valid(credentials: Authenticator, key: str, slug: str) -> bool:
    try:
        caller = await credentials.authenticate(f"Bearer {key}")
    except Unauthenticated:
        return False
    return isinstance(caller, Principal) and caller.slug == slug and Scope.MCP in caller.scopes
