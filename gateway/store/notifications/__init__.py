"""Outbound webhooks of tenants: endpoints with sealed secrets, and the outbox of deliveries."""
