"""Redaction of stored credentials in upstream responses."""
