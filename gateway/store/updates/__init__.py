"""Watches and webhooks of tenants."""
