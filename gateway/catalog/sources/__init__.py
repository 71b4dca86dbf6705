"""Imported sources: documents are fetched, compiled in child processes, compared and stored."""
