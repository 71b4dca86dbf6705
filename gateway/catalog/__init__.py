"""Reads and changes of the tenants' catalogs in PostgreSQL: one module per noun, one function per verb.

The `Raises:` sections of the functions omit two cases. Each function may raise `DatabaseUnavailable`, and each change
may raise what `transaction.change` raises.
"""
