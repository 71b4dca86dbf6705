"""The connection to PostgreSQL: roles, migrations, errors, circuit breaker, diagnostics."""
