"""The collections of all declared kinds; a kind without special functions needs no module of its own."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.catalog.kinds.audit_sinks import SINKS
from gateway.catalog.kinds.collection import Collection
from gateway.catalog.kinds.credentials import CREDENTIALS
from gateway.catalog.kinds.guardrails import GUARDRAILS
from gateway.catalog.kinds.live_sources import LIVE_SOURCES
from gateway.catalog.kinds.oauth_clients import CLIENTS
from gateway.catalog.kinds.primitives import PROMPTS, RESOURCES, TEMPLATES, TOOLS
from gateway.catalog.kinds.profiles import PROFILES
from gateway.catalog.kinds.tenants import TENANTS
from gateway.catalog.kinds.watches import WATCHES
from gateway.catalog.kinds.webhook_endpoints import ENDPOINTS
from gateway.catalog.kinds.webhooks import WEBHOOKS
from gateway.kinds.index import KINDS
from gateway.store.kinds.rows import rows_of

_SPECIAL: Mapping[str, Collection[Any]] = {
    one.kind.name: one
    for one in (
        TOOLS,
        RESOURCES,
        TEMPLATES,
        PROMPTS,
        PROFILES,
        GUARDRAILS,
        SINKS,
        WATCHES,
        WEBHOOKS,
        ENDPOINTS,
        CLIENTS,
        LIVE_SOURCES,
        CREDENTIALS,
    )
}

COLLECTIONS: Sequence[Collection[Any]] = tuple(
    _SPECIAL.get(kind.name) or Collection(kind=kind, rows=rows_of(kind)) for kind in KINDS
)
OPERATORS_COLLECTIONS: Sequence[Collection[Any]] = (TENANTS,)
