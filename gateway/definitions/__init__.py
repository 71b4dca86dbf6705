"""The contract of tools, resources and prompts; pure."""
