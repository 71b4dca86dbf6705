"""A tenant's own tools, resources, resource templates and prompts: validated, stored, listed."""
