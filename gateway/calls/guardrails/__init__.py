"""Guardrails: a tenant's checks of calls and results, built in or behind an HTTP hook."""
