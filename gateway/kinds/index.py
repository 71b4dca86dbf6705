"""All declared kinds: those of a tenant's objects, and those of the operator."""

from collections.abc import Sequence
from typing import Any

from gateway.kinds.credentials import CREDENTIAL
from gateway.kinds.deliveries import SINK, WEBHOOK, WEBHOOK_ENDPOINT
from gateway.kinds.identity import CLIENT, TENANT
from gateway.kinds.kind import Kind
from gateway.kinds.primitives import PROMPT, RESOURCE, TEMPLATE, TOOL
from gateway.kinds.selections import GUARDRAIL, PROFILE
from gateway.kinds.sources import LIVE_SOURCE
from gateway.kinds.updates import WATCH

KINDS: Sequence[Kind[Any]] = (
    TOOL,
    RESOURCE,
    TEMPLATE,
    PROMPT,
    PROFILE,
    GUARDRAIL,
    SINK,
    WATCH,
    WEBHOOK,
    WEBHOOK_ENDPOINT,
    CLIENT,
    LIVE_SOURCE,
    CREDENTIAL,
)
OPERATORS_KINDS: Sequence[Kind[Any]] = (TENANT,)
"""The kinds whose objects belong to no tenant."""
