"""`gateway stdio`: MCP on standard streams, for documents or for a tenant of a remote gateway."""
