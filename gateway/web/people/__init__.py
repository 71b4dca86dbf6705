"""Pages of a tenant's people: sign-in at the tenant's provider, and what people decide about the clients they use."""
