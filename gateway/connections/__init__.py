"""Clients attached to tenants: who is connected, and which registry each sees."""
