"""The kinds that deliver what happens to a tenant's other systems."""

from gateway.domain.members.formats import LABEL
from gateway.domain.updates.audit_sinks import TrailSink
from gateway.domain.updates.webhook_endpoints import OutboundWebhook
from gateway.domain.updates.webhooks import Webhook
from gateway.kinds.kind import Kind, Limit, ListFilter

SINK = Kind(
    of=TrailSink,
    stem="Sink",
    name="audit_sink",
    plural="audit-sinks",
    id_prefix="snk",
    about="an external system that receives the tenant's audit trail, at least once",
    limit=Limit(most=10, reason="each one reads every entry of the trail"),
    form=LABEL,
    name_about="Unique in the tenant; a DNS label.",
    example={"name": "siem", "kind": "https", "target": "https://siem.example/entries"},
    texts=lambda one: (one.name, one.target),
    filters={
        "failing": ListFilter(
            type=bool,
            about="Only sinks whose last delivery failed (true) or succeeded (false).",
            value=lambda one: one.status.fault is not None,
        )
    },
)

WEBHOOK_ENDPOINT = Kind(
    of=OutboundWebhook,
    stem="WebhookEndpoint",
    name="webhook_endpoint",
    plural="webhook-endpoints",
    id_prefix="whe",
    about="an endpoint of the tenant's own system, to which signed events are sent",
    limit=Limit(most=10, reason="each event is stored once for each of them"),
    example={
        "name": "alerts",
        "url": "https://hooks.example.com/gateway",
        "kinds": ["approval.requested"],
        "description": "To the chat of the operators.",
    },
    texts=lambda one: (one.name, one.description, one.url),
    filters={
        "enabled": ListFilter(
            type=bool,
            about="Only endpoints that are enabled (true) or disabled (false).",
            value=lambda one: one.enabled,
        ),
        "failing": ListFilter(
            type=bool,
            about="Only endpoints whose last attempt failed (true) or succeeded (false).",
            value=lambda one: one.status.failures > 0,
        ),
    },
    generates="The secret that verifies deliveries (Standard Webhooks); it is returned only once.",
    is_renamed=True,
)

WEBHOOK = Kind(
    of=Webhook,
    stem="Webhook",
    name="webhook",
    plural="webhooks",
    id_prefix="whk",
    about="an address at which a system reports changed resources",
    limit=Limit(most=100, reason="one for each system of a tenant"),
    example={"name": "cms"},
    texts=lambda one: (one.name,),
    generates="The secret that signs deliveries (Standard Webhooks); it is returned only once.",
)
