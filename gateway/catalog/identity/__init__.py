"""Authentication in a tenant: API keys, issuers, people, OAuth clients, grants, and bounds on their administration."""
