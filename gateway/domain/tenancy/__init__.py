"""Tenants, their keys, profiles, policies and limits."""
