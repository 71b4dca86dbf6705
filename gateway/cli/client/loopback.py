"""Loopback addresses that the import of a document needs as upstreams.

Only the user's own input permits them: a local document that is not an archive, or a URL on the command line.
"""

import re
from collections.abc import Iterable, Iterator

from gateway.app.local.loopback import loopback_address
from gateway.cli.input.documents import DocumentArgument
from gateway.cli.input.json_fields import JsonObject, as_text, pick, text_at, to_list, to_object, to_objects
from gateway.errors import InvalidDocument
from gateway.openapi.document import document as openapi

_HINT = re.compile(r"localhost|127\.|\[?::1")
_VARIABLE = re.compile(r"\{([^{}]+)\}")


def find_loopback(document: DocumentArgument, *, base_url: str | None) -> tuple[str, ...]:
    """Return each loopback `host:port` of the URLs on the command line, and of the servers in a local document.

    With `base_url`, the servers in the document are ignored. Servers in a fetched document are not permitted, because
    its content is not the user's own input.
    """
    typed = [url for url in (base_url, document.url) if url is not None]
    named = [] if base_url is not None else list(_server_urls(document.text))
    found = (address for url in (*typed, *named) if (address := loopback_address(url)) is not None)
    return tuple(dict.fromkeys(found))


def _server_urls(text: str | None) -> Iterator[str]:
    if text is None or not _HINT.search(text):
        return
    root = _load(text)
    yield from _urls_of(to_list(root.get("servers")))
    for path in to_object(root.get("paths")).values():
        yield from _urls_of(to_list(pick(path, "servers")))
        for operation in to_object(path).values():
            yield from _urls_of(to_list(pick(operation, "servers")))
    if host := text_at(root, "host"):
        yield from (f"{as_text(scheme)}://{host}" for scheme in to_list(root.get("schemes")) or ["http"])


def _load(text: str) -> JsonObject:
    try:
        return to_object(openapi.read_document(text.encode()).root)
    except InvalidDocument:
        return {}  # the import reports the fault and its position


def _urls_of(servers: Iterable[object]) -> Iterator[str]:
    for server in to_objects(list(servers)):
        url = text_at(server, "url")
        for name in _VARIABLE.findall(url):
            url = url.replace(f"{{{name}}}", text_at(server, "variables", name, "default"))
        yield url
