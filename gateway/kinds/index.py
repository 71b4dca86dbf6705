"""All declared kinds."""

from collections.abc import Sequence
from typing import Any

from gateway.kinds.deliveries import SINK, WEBHOOK, WEBHOOK_ENDPOINT
from gateway.kinds.identity import CLIENT
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
)
