"""The arguments of calls: their acceptance, costly checks, doubled members, and what the trail records."""
