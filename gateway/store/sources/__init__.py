"""Imported sources: their rows, the versions of their documents, proposals, and looks at their URLs."""
