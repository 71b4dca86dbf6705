"""Settings of a live source, by kind: validated field by field, returned as a copy."""

import re
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

from gateway.definitions.excerpts import shorten
from gateway.definitions.field_reader import Faults, FieldReader, copy_untrusted
from gateway.definitions.live.limits import MAX_ARGUMENTS, MAX_HEADERS, MAX_TEXT_LENGTH, MAX_TIMEOUT_S, MAX_VARIABLES
from gateway.domain.json_access import point
from gateway.domain.live_sources import LiveKind
from gateway.domain.members.limits import MAX_URL_LENGTH
from gateway.errors import DefinitionInvalid

FIELDS: Mapping[LiveKind, Sequence[str]] = {
    LiveKind.MCP: ("url", "transport", "headers", "timeout_s"),
    LiveKind.NEOVIM: ("address", "timeout_s"),
    LiveKind.AGENT: ("subject",),
    LiveKind.COMMAND: ("argv", "env", "timeout_s"),
}
TRANSPORTS = ("auto", "streamable", "sse")

SOCKET = r"unix:(/[^\x00-\x1f\x7f]{1,106})"
ADDRESS = r"tcp:(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):([0-9]{1,5})"
HEADER = r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}"
VARIABLE = r"[A-Za-z_][A-Za-z0-9_]{0,99}"
_HIGHEST_PORT = 65_535


def validate_settings(kind: LiveKind, raw: object) -> Mapping[str, object]:
    """Return the settings of a live source of this kind, as a copy.

    Raises:
        DefinitionInvalid: the settings do not have the form of the kind; each fault has a JSON Pointer.
    """
    faults = Faults()
    sent = copy_untrusted(raw, DefinitionInvalid, "settings")
    reader = FieldReader(sent, FIELDS[kind], where="/settings", faults=faults)
    _READERS[kind](reader)
    if "timeout_s" in FIELDS[kind]:
        reader.number("timeout_s", minimum=1, maximum=MAX_TIMEOUT_S)
    faults.raise_as(DefinitionInvalid, "settings")
    return {name: reader.raw(name) for name in FIELDS[kind] if reader.has(name)}


def _read_mcp(reader: FieldReader) -> None:
    url = reader.string("url", max_length=MAX_URL_LENGTH, required=True)
    if url is not None and not _is_url(url):
        reader.refuse("url", "must be an http or https URL without user name and fragment")
    reader.choice("transport", TRANSPORTS)
    _read_pairs(reader, "headers", HEADER, max_items=MAX_HEADERS)


def _read_neovim(reader: FieldReader) -> None:
    address = reader.string("address", max_length=MAX_TEXT_LENGTH, required=True)
    if address is not None and not _is_address(address):
        reader.refuse("address", "must be unix:/absolute/path or tcp:HOST:PORT")


def _read_agent(reader: FieldReader) -> None:
    """Read the subject whose keys may connect as this source; without it, those of all subjects."""
    reader.string("subject", max_length=MAX_TEXT_LENGTH)


def _read_command(reader: FieldReader) -> None:
    reader.require("argv")
    arguments = reader.strings("argv", max_items=MAX_ARGUMENTS, max_length=MAX_TEXT_LENGTH, min_items=1)
    if arguments and not arguments[0].strip():
        reader.refuse("argv", "must begin with the name or path of a program")
    _read_pairs(reader, "env", VARIABLE, max_items=MAX_VARIABLES)


_READERS: Mapping[LiveKind, Callable[[FieldReader], None]] = {
    LiveKind.MCP: _read_mcp,
    LiveKind.NEOVIM: _read_neovim,
    LiveKind.AGENT: _read_agent,
    LiveKind.COMMAND: _read_command,
}


def _read_pairs(reader: FieldReader, field: str, names: str, *, max_items: int) -> None:
    """Read an object of strings."""
    pairs = reader.members(field) or {}
    if len(pairs) > max_items:
        reader.refuse(field, f"has more than {max_items} members")
        return
    for name, value in pairs.items():
        place = reader.at(field) + point(name)
        if re.fullmatch(names, name) is None:
            reader.faults.add(place, f"{shorten(name)} is not a valid name")
        if not isinstance(value, str) or len(value) > MAX_TEXT_LENGTH or not value.isprintable():
            reader.faults.add(place, f"must be printable text of at most {MAX_TEXT_LENGTH} characters")


def _is_url(url: str) -> bool:
    if not url.isascii() or any(character <= " " for character in url):
        return False
    try:
        parts = urlsplit(url)
        is_port = parts.port != 0
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and is_port and not set("@#").intersection(url)


def _is_address(address: str) -> bool:
    socket = re.fullmatch(SOCKET, address)
    if socket is not None:
        return not {"", ".", ".."} & {*socket[1][1:].split("/")}
    endpoint = re.fullmatch(ADDRESS, address)
    return endpoint is not None and 0 < int(endpoint[1]) <= _HIGHEST_PORT
