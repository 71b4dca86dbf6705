"""A multi-tenant MCP gateway: one HTTPS URL per tenant, for REST APIs, MCP servers and custom primitives."""
