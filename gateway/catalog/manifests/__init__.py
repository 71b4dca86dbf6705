"""Configuration as code: wanted objects of all kinds, applied to one tenant in one transaction."""
