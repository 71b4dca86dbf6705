"""Reads and changes of the tenants' catalogs in PostgreSQL: one module per noun, one function per verb."""
