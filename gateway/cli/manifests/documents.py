"""Documents of manifest files: JSON or YAML objects, each read within the limits of the whole run.

A fault of one document hides none of another. Aliases count as if their values were written out, texts included:
a request repeats them.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import cast

import yaml

from gateway.cli.input.declarations import is_json, split_yaml
from gateway.cli.input.json_fields import JsonObject, is_object, read_json, to_list
from gateway.cli.input.limits import MAX_DEPTH
from gateway.cli.manifests.files import ManifestText
from gateway.cli.manifests.limits import MAX_DOCUMENTS, MAX_TEXT, MAX_VALUES
from gateway.cli.manifests.places import ManifestFaults, Place
from gateway.cli.output.tables import shorten
from gateway.errors import Fault, GatewayError
from gateway.openapi.document.yaml_reader import read_yaml

_DESCRIPTIONS = ("openapi", "swagger")
"""Members of OpenAPI documents, which are beside the manifests of sources."""
_MERGE = "<<"
"""The key that merges mappings, which may occur several times."""
_LONGEST_KEY = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestDocument:
    """One document: an object that nothing has checked yet."""

    place: Place
    content: JsonObject


@dataclass(slots=True, kw_only=True)
class DocumentReader:
    """Reads the documents of files; what is not an object within the limits is a fault."""

    faults: ManifestFaults
    most_documents: int = MAX_DOCUMENTS
    most_values: int = MAX_VALUES
    most_text: int = MAX_TEXT
    _documents: int = 0

    def read(self, texts: Iterable[ManifestText]) -> Iterator[ManifestDocument]:
        """Yield the documents of the texts; reading ends at the first limit of the whole run."""
        for one in texts:
            parts = _json_values(one.text) if is_json(one.place.file, one.text) else self._yaml_values(one.text)
            values = list(parts)
            for number, value in enumerate(values, 1):
                self._documents += 1
                if self._documents > self.most_documents:  # guard: manifest-documents
                    self._refuse(one.place, f"more than {self.most_documents:,} documents; later ones were not read")
                    return
                place = replace(one.place, number=number, is_only=len(values) == 1)
                if (content := self._checked(place, value)) is not None and not (one.is_found and _is_api(content)):
                    yield ManifestDocument(place=place, content=content)

    def _checked(self, place: Place, value: object) -> JsonObject | None:
        if isinstance(value, Fault):
            self.faults.add([replace(value, pointer=str(place))])
            return None
        try:
            values, text = measure(value, values=self.most_values, text=self.most_text)
        except ValueError as error:
            self._refuse(place, str(error))
            return None
        self.most_values -= values
        self.most_text -= text
        if not is_object(value):
            self._refuse(place, "is not an object")
            return None
        return value

    def _yaml_values(self, text: str) -> Iterator[object]:
        """Yield the value, or the fault, of each document of a YAML stream."""
        for number, (lines, part) in enumerate(split_yaml(text)):
            if number > self.most_documents:
                return
            try:
                value = read_yaml(part, depth=MAX_DEPTH, nodes=max(1, self.most_values))
            except GatewayError as error:
                yield _moved(error, lines)
            else:
                yield _repeated_key(part, lines) or value

    def _refuse(self, place: Place, reason: str) -> None:
        self.faults.add([place.fault("", reason)])


def _json_values(text: str) -> Iterator[object]:
    try:
        value = read_json(text)
    except json.JSONDecodeError as error:
        yield Fault(pointer="", reason=f"is not valid JSON: {error.msg}", line=error.lineno, column=error.colno)
        return
    except ValueError as error:
        yield Fault(pointer="", reason=f"is not valid JSON: {error}")
        return
    items = to_list(value)
    yield from items if items or value == [] else [value]


def _moved(error: GatewayError, lines: int) -> Fault:
    """The fault of a document that begins after so many lines of its file."""
    fault = next(iter(error.faults), None)
    if fault is None or fault.line is None:
        return Fault(pointer="", reason=error.message)
    return replace(fault, line=fault.line + lines, reason=f"is not accepted as YAML: {fault.reason}")


def _repeated_key(text: str, lines: int) -> Fault | None:
    """The first key that a mapping has twice: the reader takes the last value, and the first would be lost unnoticed.

    The text is valid, and its mappings have scalars as keys.
    """
    frames: list[tuple[set[str] | None, bool]] = []
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionEndEvent):
            frames.pop()
        elif isinstance(event, yaml.NodeEvent):
            keys, is_key = frames[-1] if frames else (None, False)
            if keys is not None:
                frames[-1] = (keys, not is_key)
                name = event.value if is_key and isinstance(event, yaml.ScalarEvent) else _MERGE
                if name in keys:
                    reason = f"the key {shorten(name, _LONGEST_KEY)!r} occurs twice"
                    line = None if event.start_mark is None else event.start_mark.line + 1 + lines
                    return Fault(pointer="", reason=reason, line=line)
                keys |= {name} - {_MERGE}
            if isinstance(event, yaml.CollectionStartEvent):
                frames.append((set() if isinstance(event, yaml.MappingStartEvent) else None, True))
    return None


def _is_api(content: JsonObject) -> bool:
    return "kind" not in content and any(name in content for name in _DESCRIPTIONS)


def measure(value: object, *, values: int, text: int) -> tuple[int, int]:
    """Count the values of a document, and the characters of its texts and keys, with aliases written out.

    Raises:
        ValueError: there are more than so many, or the document is nested too deeply.
    """
    count, length = 0, 0
    left: list[tuple[object, int]] = [(value, 0)]
    while left:
        one, depth = left.pop()
        count += 1
        inner: Iterable[object] = ()
        if isinstance(one, str):
            length += len(one)
        elif is_object(one):
            inner = one.values()
            length += sum(map(len, one))
        elif isinstance(one, list):
            inner = cast("list[object]", one)
        if depth > MAX_DEPTH:  # guard: manifest-depth
            raise ValueError(f"is nested more than {MAX_DEPTH} levels deep")
        left.extend((each, depth + 1) for each in inner)
        if count + len(left) > values:  # guard: manifest-values
            raise ValueError("the manifests have too many values, with aliases written out")
        if length > text:  # guard: manifest-text
            raise ValueError("the manifests have too much text, with aliases written out")
    return count, length
