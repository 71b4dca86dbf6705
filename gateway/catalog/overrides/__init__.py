"""Overrides of imported tools: validation, storage, and the definition that results."""
