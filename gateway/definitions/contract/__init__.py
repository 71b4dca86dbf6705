"""Definitions of tools, resources and prompts, validated strictly."""
