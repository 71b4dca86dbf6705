"""Models of bodies, queries and responses, derived from the declarations of the kinds."""
