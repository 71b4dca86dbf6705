"""Endpoints of keys, of issuers, and of the people whom they name."""
