"""Guardrails over a real socket."""
