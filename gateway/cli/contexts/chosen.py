"""The context of the running command, and the key for its URL."""

from pathlib import Path

from gateway.cli.client.locations import DEFAULT_FOLDER, find_admin_key, find_key
from gateway.cli.contexts.stored import StoredContext, read_key
from gateway.cli.input.options import chosen, chosen_context, is_context_option


def admin_key(url: str) -> str:
    """Find the key for the admin API at the URL.

    Raises:
        Failure: there is none, or it cannot be read.
    """
    stored = _stored_key(url)
    given = chosen("key") or (stored if is_context_option() else None)
    return find_admin_key(url, given=given, folder=Path(chosen("data_dir") or DEFAULT_FOLDER), stored=stored)


def tenant_key(url: str) -> str:
    """Find the key for an MCP URL.

    Raises:
        Failure: there is none, or it cannot be read.
    """
    stored = _stored_key(url)
    return find_key(chosen("key") or (stored if is_context_option() else None), stored=stored)


def _stored_key(url: str) -> str | None:
    """The key of the context; None for a URL that does not belong to it, which must not receive the key."""
    found: StoredContext | None = chosen_context()
    if found is None or not (url == found.url or url.startswith(f"{found.url}/")):  # guard: stored-key-one-url
        return None
    return read_key(found)
