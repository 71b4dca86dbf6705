"""The MCP face: both protocol eras at one URL per tenant."""
