"""The examination of an installation: each finding has a remedy."""
