"""Operators by name: keys with roles, the trail of the installation, and its issuers."""
