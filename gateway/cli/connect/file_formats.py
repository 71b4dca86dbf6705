"""The formats of configuration files: JSON, TOML and YAML. One server is set or removed; everything else stays."""

import json
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import yaml

from gateway.cli.input.json_fields import JsonObject, is_object, to_object

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


class Unreadable(Exception):
    """The file cannot be read or changed; the message has the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """Reader and writer of one format.

    `read` returns the content of a file. `write` returns the text with this server at the place, or
    without it if it is None.
    """

    read: Callable[[str], JsonObject]
    write: Callable[[str, Sequence[str], str, JsonObject | None], str]


def servers_in(content: JsonObject, members: Sequence[str]) -> JsonObject:
    """Return the servers of a file, by name.

    Raises:
        Unreadable: something else is at their place.
    """
    found: object = content
    for member in members:
        found = to_object(found).get(member, {})
        if not is_object(found):
            raise Unreadable(f"`{member}` is no object")
    return to_object(found)


def _read_json(text: str) -> JsonObject:
    try:
        content: object = json.loads(text) if text.strip() else {}
    except ValueError as error:
        reason = "it has comments or trailing commas, which would be lost" if _has_comments(text) else str(error)
        raise Unreadable(f"it is no plain JSON: {reason}") from None
    return _object(content)


def _has_comments(text: str) -> bool:
    return re.search(r"^\s*//|/\*|,\s*[}\]]", text, re.MULTILINE) is not None


def _write_json(text: str, members: Sequence[str], name: str, entry: JsonObject | None) -> str:
    content = _put(_read_json(text), members, name, entry)
    indent = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return json.dumps(content, indent=indent[1] if indent else 2, ensure_ascii=False) + "\n"


def _read_yaml(text: str) -> JsonObject:
    try:
        return _object(yaml.safe_load(text) or {})
    except yaml.YAMLError as error:
        raise Unreadable(f"it is no YAML: {error}") from None


def _write_yaml(text: str, members: Sequence[str], name: str, entry: JsonObject | None) -> str:
    if re.search(r"(^|\s)#", text, re.MULTILINE):
        raise Unreadable("it has comments, which would be lost")
    return yaml.safe_dump(_put(_read_yaml(text), members, name, entry), sort_keys=False, allow_unicode=True)


def _read_toml(text: str) -> JsonObject:
    try:
        return _object(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise Unreadable(f"it is no TOML: {error}") from None


def _write_toml(text: str, members: Sequence[str], name: str, entry: JsonObject | None) -> str:
    """Write one table, with inline tables within it; other lines stay as they are, with their comments."""
    table = ".".join(_key(part) for part in (*members, name))
    kept = _without_table(text, table)
    if name in servers_in(_read_toml(kept), members):
        raise Unreadable(f"`{table}` is written in another form than a table of its own")
    if entry is None:
        return kept
    lines = [f"[{table}]", *(f"{_key(key)} = {_value(value)}" for key, value in entry.items())]
    return (kept.rstrip("\n") + "\n\n" if kept.strip() else "") + "\n".join(lines) + "\n"


def _without_table(text: str, table: str) -> str:
    """Remove a table and the tables within it."""
    kept, is_inside = list[str](), False
    for line in text.splitlines(keepends=True):
        header = re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line)
        if header is not None:
            is_inside = header[1] == table or header[1].startswith(f"{table}.")
        if not is_inside:
            kept.append(line)
    return "".join(kept)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key)


def _value(value: object) -> str:
    if is_object(value):
        return "{ " + ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value)  # texts, numbers and lists of them have the same form in TOML


def _put(content: JsonObject, members: Sequence[str], name: str, entry: JsonObject | None) -> JsonObject:
    """Return the content with this server, or without it."""
    servers = servers_in(content, members)
    kept = {key: value for key, value in servers.items() if key != name or entry is not None}
    changed: JsonObject = kept if entry is None else {**kept, name: entry}
    for place in range(len(members) - 1, -1, -1):
        changed = {**servers_in(content, members[:place]), members[place]: changed}
    return changed


def _object(content: object) -> JsonObject:
    if not is_object(content):
        raise Unreadable("it is no object")
    return content


JSON: Final = FileFormat(read=_read_json, write=_write_json)
TOML: Final = FileFormat(read=_read_toml, write=_write_toml)
YAML: Final = FileFormat(read=_read_yaml, write=_write_yaml)
