"""Calls that outlive their request: approvals by a person, and tasks of clients."""
