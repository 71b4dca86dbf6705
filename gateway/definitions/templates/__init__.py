"""Texts and JSON trees with placeholders."""
