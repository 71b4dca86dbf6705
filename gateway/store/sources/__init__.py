"""Imported sources: their rows, the versions of their documents, proposals, and refreshes from their URLs."""
