"""Configuration as code over the admin API."""
