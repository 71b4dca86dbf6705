"""Endpoints of keys, issuers, people, clients, grants and access rules."""
