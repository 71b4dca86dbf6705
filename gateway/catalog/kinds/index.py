"""The collections of all declared kinds."""

from collections.abc import Sequence
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

COLLECTIONS: Sequence[Collection[Any]] = (
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
OPERATORS_COLLECTIONS: Sequence[Collection[Any]] = (TENANTS,)
