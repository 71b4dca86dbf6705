"""Names of objects for the completion of the shell: read from the gateway within a second, or not at all.

Names come from tenants. A shell inserts a completed word into a command line as it is, so only names without a
character that a shell treats specially are offered.
"""

import threading
from typing import TYPE_CHECKING, Final, cast

import click
import httpx
from click.shell_completion import CompletionItem

from gateway.cli.client.admin_api import AdminApi
from gateway.cli.client.admin_context import AdminContext
from gateway.cli.contexts.chosen import admin_key
from gateway.cli.input.json_fields import text_at
from gateway.cli.input.options import chosen, chosen_url
from gateway.cli.kinds.places import naming_of
from gateway.cli.limits import COMPLETION_S, MAX_COMPLETED, MAX_SEARCH_LENGTH
from gateway.kinds.index import EVERY_KIND

if TYPE_CHECKING:
    from gateway.cli.object_names import Naming

_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+-")
_TIMEOUT: Final = httpx.Timeout(COMPLETION_S / 2)


def complete_names(context: click.Context, naming: "Naming", incomplete: str) -> list[CompletionItem]:
    """Return the names that begin with the incomplete one; none after a failure or a second."""
    if not naming.plural:
        return []
    found: list[str] = []
    with context.scope(cleanup=False):
        thread = threading.Thread(target=_read_quietly, args=(_client(), naming, incomplete, found), daemon=True)
        thread.start()
        thread.join(COMPLETION_S)
    given = set(_given(context))
    return [CompletionItem(name) for name in list(found) if name not in given]


def complete_kind(context: click.Context, kind: str, incomplete: str) -> list[CompletionItem]:
    """Return the names of objects of a kind that begin with the incomplete one."""
    found = next((one for one in EVERY_KIND if one.name == kind), None)
    return [] if found is None else complete_names(context, naming_of(found), incomplete)


def is_plain(name: str) -> bool:
    """True if no shell treats a character of the name specially, and the name is no option."""
    return bool(name) and not name.startswith("-") and _PLAIN.issuperset(name)


def _given(context: click.Context) -> list[str]:
    """The names before the incomplete one."""
    several = [cast("tuple[object, ...]", value) for value in context.params.values() if isinstance(value, tuple)]
    return [word for words in several for word in words if isinstance(word, str)]


def _client() -> "AdminContext | None":
    """The client of the options before the incomplete word; None if one is unusable."""
    try:
        url = chosen_url()
        key = admin_key(url)
        return AdminContext(admin=AdminApi(url, key, timeout=_TIMEOUT), tenant=chosen("tenant"), as_json=False)
    except Exception:  # a completion reports no failure
        return None


def _read_quietly(context: "AdminContext | None", naming: "Naming", incomplete: str, found: list[str]) -> None:
    if context is None:
        return
    try:
        with context.admin:
            query = {"search": incomplete} if incomplete and len(incomplete) <= MAX_SEARCH_LENGTH else {}
            for item in context.admin.pages(naming.path(context), limit=MAX_COMPLETED, query=query):
                for label in [*naming.labels(item), *([text_at(item, "id")] if incomplete else [])]:
                    if not is_plain(label):  # guard: completed-plain
                        continue
                    if label.startswith(incomplete) and label not in found:
                        found.append(label)
    except Exception:  # a completion reports no failure
        return
