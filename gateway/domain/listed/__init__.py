"""Listed forms: names and schemas of tools as clients receive them, derived from the stored ones."""
