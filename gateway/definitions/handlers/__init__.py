"""Handler specs: handlers that tenants declare, parsed and rated for safety."""
