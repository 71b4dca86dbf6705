"""Killable child processes for documents and for costly validations: start and limits."""
