"""PostgreSQL: the rows of all tenants, behind row-level security.

The `Raises:` sections of the functions omit two cases: any query may raise `DatabaseUnavailable`, and a value that
PostgreSQL cannot store raises `BadInput`.
"""
