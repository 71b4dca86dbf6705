"""Limits of URIs, URI templates and URL templates, in characters."""

MAX_MATCHED_URI_LENGTH = 8192
"""Characters of a URI that is matched with a template. Values are percent-encoded, which triples their length."""

MAX_REQUEST_URL_LENGTH = 2048
"""Characters of the URL of a declared request; proxies and servers refuse longer ones from about 2,000 to 8,000."""
