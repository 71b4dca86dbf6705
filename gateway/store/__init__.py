"""PostgreSQL: every row of every tenant, and the row-level security between tenants."""
