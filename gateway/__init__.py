"""A multi-tenant MCP gateway: one HTTPS URL per tenant, whatever is behind it."""
