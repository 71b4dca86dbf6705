"""Killable child processes for documents and for dear validations: start and limits."""
