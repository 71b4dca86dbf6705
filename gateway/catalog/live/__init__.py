"""Live sources of a tenant: declared, attached, and what was discovered at them."""
