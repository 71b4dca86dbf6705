"""Policies, guardrails, approvals and tasks of calls, as they are stored."""
