"""Live sources of tenants, and the primitives discovered at them."""
