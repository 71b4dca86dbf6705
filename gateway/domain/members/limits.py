"""Limits of members that several kinds of objects share."""

MAX_URL_LENGTH = 2048
"""Characters of a URL or URI; proxies and servers refuse longer ones from about 2,000 to 8,000."""
