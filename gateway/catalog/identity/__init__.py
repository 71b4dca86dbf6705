"""Credentials of callers: a tenant's keys, the issuers whose tokens it accepts, and the people whom they name."""
