"""Resource updates: reported by tenants, by signed webhooks and by watched URLs."""
