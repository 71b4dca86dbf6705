"""Redis: events between replicas, sessions, limits and caches; the only package that imports redis."""
