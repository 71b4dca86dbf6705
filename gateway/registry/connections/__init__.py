"""Clients attached to tenants, and the registry that each of them sees."""
