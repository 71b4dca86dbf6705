"""Reports of changed resources: watched URLs and signed webhooks."""
