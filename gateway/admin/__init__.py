"""The admin REST API: tenants, keys, sources, tools, policy and audit below `/admin/v1`."""
