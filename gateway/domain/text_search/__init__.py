"""Searches of untrusted texts: patterns of secrets, personal data and injected instructions, and what conceals them."""
