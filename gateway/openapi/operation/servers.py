"""The server of an operation, with its variables filled in: origin, base path and query of its requests."""

import re
from collections.abc import Sequence
from urllib.parse import SplitResult, quote, urljoin, urlsplit

import msgspec

from gateway.domain.json_access import Object, as_list, as_object
from gateway.openapi.document.json_access import Unusable, object_at, quote_text

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SAFE = "/:@!$&'()*+,;=-._~%"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_DOTS = frozenset((".", "..", "%2e", "%2e%2e", ".%2e", "%2e."))


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a base URL: path without a trailing slash, query without its question mark, both encoded."""

    origin: str
    path: str = ""
    query: str = ""


def parse_server(url: str) -> Server:
    """Parse an absolute http or https URL.

    Raises:
        Unusable: requests cannot go to the URL.
    """
    shown = quote_text(url)
    parts = _split(url.strip(), shown)
    if parts.username is not None or parts.password is not None:
        raise Unusable(f"the server URL {shown} contains a user name; store a credential instead")
    path = encode_literal(parts.path).rstrip("/")
    if has_dots(path):
        raise Unusable(f"the server URL {shown} has a dot segment in its path")
    return Server(origin=_origin(parts, shown), path=path, query=encode_literal(parts.query, safe="?"))


def find_server(levels: Sequence[Object], *, document_url: str | None) -> Server:
    """Return the first usable server of the innermost level that declares servers; the default server is `/`.

    Raises:
        Unusable: none of the servers can be used; the reason is about the first one.
    """
    declared = next((as_list(level["servers"]) for level in levels if level.get("servers")), None)
    refusal: Unusable | None = None
    for item in declared or [{"url": "/"}]:
        try:
            return parse_server(_resolve(_fill(as_object(item)), document_url))
        except Unusable as unusable:
            refusal = refusal or unusable
    raise refusal or Unusable("`servers` must be a list of servers")


class ReplacedServer(msgspec.Struct, frozen=True, kw_only=True):
    """The text on a server that a base URL replaces; `loses_path` if requests lack the path of a relative one."""

    text: str
    loses_path: bool = False


def replaced_server(levels: Sequence[Object], base: Server) -> ReplacedServer | None:
    """Return what the base URL changes about the first server of the innermost level; None if it changes nothing.

    The address of a relative server is that of the document, so only its path counts. An absolute one is named if it
    belongs to the operation or path item, or if its path is missing in the base URL. `levels` ends with the document.
    """
    try:
        declared, written = _first_server(levels)
        url = urljoin("https://host/", written)
    except (Unusable, ValueError):
        return None
    path = urlsplit(url).path.rstrip("/")
    lacks_path = bool(path) and not base.path.endswith(path)
    if "://" not in written.split("?", 1)[0]:
        text = f"the base URL replaces the relative server {quote_text(path)}; requests lack its path"
        return ReplacedServer(text=text, loses_path=True) if lacks_path and not written.startswith("//") else None
    if declared is not levels[-1] and written != _first_server(levels[-1:])[1]:
        is_base = f"{base.origin}{base.path}" == written.rstrip("/")
        return None if is_base else ReplacedServer(text=f"the base URL replaces its own server {quote_text(written)}")
    text = f"the base URL replaces the server {quote_text(written)}; requests lack its path"
    return ReplacedServer(text=text) if lacks_path else None


def _first_server(levels: Sequence[Object]) -> tuple[Object, str]:
    """The innermost level that declares servers, else the last one, and the URL of its first server."""
    level = next((level for level in levels if level.get("servers")), levels[-1])
    declared = as_list(level.get("servers"))
    return level, _fill(as_object(declared[0])) if declared else "/"


def list_servers(levels: Sequence[Object], *, document_url: str | None) -> list[str]:
    """List the usable server URLs of the innermost level that declares servers; if none is usable, all as written."""
    declared = next((as_list(level["servers"]) for level in levels if level.get("servers")), None)
    found: list[str] = []
    unusable: list[str] = []
    for item in map(as_object, declared or [{"url": "/"}]):
        url = item.get("url") if item is not None else None
        if not isinstance(url, str):
            continue
        try:
            found.append(_resolve(_fill(item), document_url))
        except Unusable:
            unusable.append(url)
    return found or unusable


def encode_literal(text: str, *, safe: str = "") -> str:
    """Percent-encode the fixed text of a path or query; already encoded characters are unchanged."""
    return quote(_BARE_PERCENT.sub("%25", text), safe=_SAFE + safe)


def has_dots(path: str) -> bool:
    """True if a segment of the path is `.` or `..`, also encoded or with path parameters."""
    return not _DOTS.isdisjoint(segment.split(";", 1)[0] for segment in path.lower().split("/"))


def _fill(server: Object | None) -> str:
    url = server.get("url") if server is not None else None
    if server is None or not isinstance(url, str):
        raise Unusable("a server has no `url`")
    variables = object_at(server, "variables")
    return _VARIABLE.sub(lambda found: _value(variables, found[1], url), url)


def _value(variables: Object, name: str, url: str) -> str:
    variable = object_at(variables, name)
    choices = as_list(variable.get("enum")) or ()
    value = variable.get("default", choices[0] if choices else None)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Unusable(f"the server URL {quote_text(url)} has no default for its variable {quote_text(name)}")
    return str(value)


def _resolve(url: str, document_url: str | None) -> str:
    if "://" in url.split("?", 1)[0]:
        return url
    if document_url is None:
        raise Unusable(f"the server URL {quote_text(url)} is relative and no base URL is given")
    try:
        return urljoin(document_url, url)
    except ValueError as error:
        raise Unusable(f"the server URL {quote_text(url)} is not a URL: {error}") from error


def _split(url: str, shown: str) -> SplitResult:
    if any(ord(character) < 0x21 or ord(character) == 0x7F for character in url) or "\\" in url:
        raise Unusable(f"the server URL {shown} has an invalid character")
    try:
        parts = urlsplit(url)
        is_complete = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError as error:
        raise Unusable(f"the server URL {shown} is not a URL: {error}") from error
    if parts.scheme not in _DEFAULT_PORTS or not is_complete:
        raise Unusable(f"the server URL {shown} is not an absolute http or https URL")
    return parts


def _origin(parts: SplitResult, shown: str) -> str:
    host = parts.hostname or ""
    try:
        ascii_host = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise Unusable(f"the server URL {shown} has an invalid host name") from error
    if not re.fullmatch(r"[0-9a-z._:-]+", ascii_host):
        raise Unusable(f"the server URL {shown} has an invalid host name")
    bracketed = f"[{ascii_host}]" if ":" in ascii_host else ascii_host
    port = parts.port
    suffix = "" if port is None or port == _DEFAULT_PORTS[parts.scheme] else f":{port}"
    return f"{parts.scheme}://{bracketed}{suffix}"
