"""Query tools over documents: outlines, search, details, truncated to a size."""
