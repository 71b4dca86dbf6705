"""Schemas of a document, translated to JSON Schema 2020-12."""
