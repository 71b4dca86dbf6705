"""Outbound webhooks of a tenant: endpoints, deliveries, and receivers that misbehave."""
