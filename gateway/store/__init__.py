"""PostgreSQL: every row of every tenant, and the walls between tenants."""
