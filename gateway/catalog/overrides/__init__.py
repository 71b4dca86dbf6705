"""Overrides of imported tools: validation, storage, and the effective definition."""
