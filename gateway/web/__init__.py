"""HTTP parts that the MCP API and the admin API share: edge, problem documents, bodies, authentication and probes."""
