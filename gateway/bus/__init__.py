"""Redis: events between replicas, session records, rates and slots; the only package that imports redis."""
