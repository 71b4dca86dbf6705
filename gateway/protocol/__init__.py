"""The MCP protocol layer: handshake and stateless revisions at one URL per tenant."""
