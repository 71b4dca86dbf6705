"""Contexts: named gateways with a tenant and a key, stored for the person who signed in."""
