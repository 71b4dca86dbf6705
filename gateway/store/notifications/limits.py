"""Limits of the outbox of webhooks."""

MAX_QUEUED = 10_000
"""Pending deliveries of one endpoint; later events are dropped."""
MAX_PAYLOAD_BYTES = 64 * 1024
"""Bytes of the payload of an event; the gateway's own events have a few KiB."""
