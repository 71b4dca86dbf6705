"""Approvals and tasks of calls: their states, limits and clean-up."""
