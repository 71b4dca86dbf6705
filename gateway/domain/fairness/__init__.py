"""Slots, queues and caches of one replica, shared fairly between tenants."""
