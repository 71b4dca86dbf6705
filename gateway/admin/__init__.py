"""The REST face: tenants, keys, sources, tools, policy and audit under /admin/v1."""
