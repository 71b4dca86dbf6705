"""Updates of resources and sources: watched URLs, webhooks, versions and their differences."""
