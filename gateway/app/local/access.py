"""Access of one person to a gateway on this machine: a tenant, and a key for its MCP clients in the data folder."""

from dataclasses import replace
from pathlib import Path

from gateway.app.local.key_file import read_key, write_key
from gateway.catalog.kinds.keys import KEYS
from gateway.catalog.tenants import create_tenant, find_tenant
from gateway.catalog.transaction import Author, CatalogContext
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.policy import LOCAL_POLICY, read_decisions
from gateway.domain.tenancy.principals import Operator, Principal
from gateway.errors import NotFound, Unauthenticated
from gateway.identity.authenticator import Authenticator
from gateway.kinds.identity import KEY

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
    new = KEY.make("", {"name": "program", "scopes": frozenset({Scope.MCP})})
    _, text = await KEYS.create_with_secret(tenant.id, catalog, new, by=_AUTHOR)
    if text is None:
        raise RuntimeError("a new key has no text")
    write_key(kept_in, text)
    return text


async def _is_valid(credentials: Authenticator, key: str, slug: str) -> bool:
    try:
        caller = await credentials.authenticate(f"Bearer {key}")
    except Unauthenticated:
        return False
    return isinstance(caller, Principal) and caller.slug == slug and Scope.MCP in caller.scopes
