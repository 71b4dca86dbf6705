"""Review of an import: semantic differences from the version before, and suspicious text."""
