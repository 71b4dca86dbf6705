"""Declaration files: JSON or YAML with one or more documents. Each document is an object to send for a tenant."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.documents import name_of
from gateway.cli.input.json_fields import JsonObject, is_object, read_json, to_list
from gateway.cli.input.limits import MAX_DEPTH, MAX_FILE_BYTES, MAX_NODES
from gateway.errors import GatewayError

_STANDARD_INPUT = "-"
_DOCUMENT_MARKER = re.compile(r"^(?:---(?=\s|$)|\.\.\.(?=\s|$))", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """One document of a file: its name in messages, and its content."""

    place: str
    content: JsonObject


def read_declarations(spec: str) -> Sequence[Declaration]:
    """Read the documents of a file, or of standard input for `-`; each element of a top-level list is a document.

    Raises:
        Failure: the file cannot be read, is empty or too large, or does not contain JSON or YAML objects.
    """
    name = name_of(spec)
    text = _read(spec, name)
    if not text.strip():
        raise Failure(f"{name} is empty", ExitCode.USAGE)
    values = _read_json(name, text) if is_json(spec, text) else list(_read_yaml(name, text))
    if not values:
        raise Failure(f"{name} declares nothing", ExitCode.USAGE)
    return [_declare(name, number, value, len(values)) for number, value in enumerate(values, 1)]


def for_each(
    declarations: Sequence[Declaration], act: Callable[[JsonObject], JsonObject], done: Callable[[JsonObject], None]
) -> None:
    """Send the declarations in order and report each; the first refusal ends the sequence.

    Raises:
        Failure: a declaration was refused. The message names it; all declarations before it were accepted.
    """
    for declaration in declarations:
        try:
            answer = act(declaration.content)
        except Failure as failure:
            message = f"{declaration.place}: {failure.message}"
            raise Failure(message, failure.exit_code, faults=failure.faults) from None
        done(answer)


def only_one(declarations: Sequence[Declaration]) -> Declaration:
    """Return the only document of a file.

    Raises:
        Failure: the file has several documents.
    """
    if len(declarations) != 1:
        raise Failure("a name requires a file with one document", ExitCode.USAGE)
    return declarations[0]


def _read(spec: str, name: str) -> str:
    try:
        raw = sys.stdin.buffer.read(MAX_FILE_BYTES + 1) if spec == _STANDARD_INPUT else _read_file(Path(spec))
    except OSError as error:
        raise Failure(f"cannot read {name}: {error.strerror or error}", ExitCode.USAGE) from None
    if len(raw) > MAX_FILE_BYTES:
        raise Failure(f"{name} has more than {MAX_FILE_BYTES // 1024 // 1024} MiB", ExitCode.USAGE)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Failure(f"{name} is not UTF-8 text (byte {error.start})", ExitCode.USAGE) from None


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_FILE_BYTES + 1)


def is_json(spec: str, text: str) -> bool:
    """True if the file is JSON: by its name, or because it begins like JSON and has no YAML document markers."""
    return spec.lower().endswith(".json") or (text.lstrip()[:1] in {"{", "["} and not _DOCUMENT_MARKER.search(text))


def _read_json(name: str, text: str) -> list[object]:
    try:
        value = read_json(text)
    except json.JSONDecodeError as error:
        raise Failure(
            f"{name} is not valid JSON: line {error.lineno}, column {error.colno}: {error.msg}", ExitCode.USAGE
        ) from None
    except ValueError as error:
        raise Failure(f"{name} is not valid JSON: {error}", ExitCode.USAGE) from None
    items = to_list(value)
    return items if items or value == [] else [value]


def _read_yaml(name: str, text: str) -> Iterator[object]:
    """Yield each document of a YAML stream, or each element of a document that is a list."""
    from gateway.openapi.document.yaml_reader import read_yaml  # noqa: PLC0415  # help reads no file

    for lines, part in split_yaml(text):
        try:  # empty lines before the text keep the file's line numbers in errors
            value: object = read_yaml("\n" * lines + part, depth=MAX_DEPTH, nodes=MAX_NODES)
            yield from to_list(value) or ([] if value == [] else [value])
        except GatewayError as error:
            raise Failure(f"{name}: {error.message}", ExitCode.USAGE, faults=error.faults) from None


def split_yaml(text: str) -> Iterator[tuple[int, str]]:
    """Yield the text of each document that is not empty, and the number of lines before it.

    A document marker at the start of a line cannot be part of a YAML value.
    """
    start, lines = 0, 0
    for end, after in [
        *((mark.start(), mark.end()) for mark in _DOCUMENT_MARKER.finditer(text)),
        (len(text), len(text)),
    ]:
        part = text[start:end]
        if any(line.split("#", 1)[0].strip() for line in part.splitlines()):
            yield lines, part
        lines += text.count("\n", start, after)
        start = after


def _declare(name: str, number: int, value: object, total: int) -> Declaration:
    place = name if total == 1 else f"{name}, document {number}"
    if not is_object(value):
        raise Failure(f"{place} is not an object", ExitCode.USAGE)
    return Declaration(place=place, content=value)


def text_in(content: Mapping[str, object], *path: str) -> str:
    """Return the text at a path of the document; empty if there is none."""
    value: object = content
    for part in path:
        value = value.get(part) if is_object(value) else None
    return value if isinstance(value, str) else ""
