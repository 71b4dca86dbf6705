"""Authentication of credentials, and the permissions of their callers."""
