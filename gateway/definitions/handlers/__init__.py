"""Handler specs: declarations of tenants, parsed and judged."""
