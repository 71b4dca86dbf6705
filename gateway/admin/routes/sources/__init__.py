"""Endpoints of sources and of the versions of their documents."""
