"""The bundler of multi-file documents: references between files become references inside one document.

References reach other files only by relative paths inside the archive. A referenced value of another file becomes a
component if its kind allows it, so that cycles remain references. A value of any other kind, such as a path item, is
inlined at the reference. Extensions (`x-…`) that contain references are dropped.
"""

import posixpath
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import cast
from urllib.parse import unquote

import msgspec
import orjson

from gateway.domain.json_access import Object, as_list, as_object, point
from gateway.errors import DocumentTooLarge, Fault, InvalidDocument
from gateway.openapi.document.document import read_tree
from gateway.openapi.document.json_access import object_at, quote_text
from gateway.openapi.document.limits import (
    MAX_BUNDLE_WARNINGS,
    MAX_BUNDLED_NAME_LENGTH,
    MAX_DEPTH,
    MAX_MISSING_FILES,
    MAX_NODES,
    MAX_REFERENCE_CHAIN,
    MAX_ROOT_CANDIDATES,
)
from gateway.openapi.document.reference_kinds import LITERAL, SECTIONS, SWAGGER_SECTIONS, kind_of_member
from gateway.openapi.document.references import PARAMETERS, find_step, is_beside_reference, merge_path_item, ref_tokens

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_ROOT_KEY = re.compile(rb"""(?:openapi|swagger)["']?\s*:\s*["']?[23]\b""")
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_SUFFIXES = (".json", ".yaml", ".yml")


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """One document, as JSON, its root file `entry`, and warnings about references that could not be followed."""

    document: bytes
    warnings: tuple[str, ...]
    entry: str
    missing: tuple[str, ...] = ()
    """Paths of files that references name but the archive lacks; at most 100."""


class BundleLocation(msgspec.Struct, frozen=True):
    """The position of a value in one of the files."""

    file: str
    tokens: tuple[str, ...]


class _PointerReference(msgspec.Struct, frozen=True):
    """A reference found while following a pointer, and the remaining tokens of that pointer."""

    ref: str
    rest: tuple[str, ...]


def bundle(files: Mapping[str, bytes], *, entry: str | None) -> Bundle:
    """Bundle the files; the root file is `entry`, or the one OpenAPI document nearest to the archive's root.

    Raises:
        InvalidDocument: `entry` does not exist, no single root file is found, or a needed file cannot be read.
        DocumentTooLarge: a file or the result exceeds the limits of a document.
    """
    return _bundler(files, entry).run()


def find_positions(files: Mapping[str, bytes], *, entry: str | None) -> Callable[[Sequence[str]], BundleLocation]:
    """Return a function from the path of a value in the bundled document to its position in the files.

    Raises:
        InvalidDocument, DocumentTooLarge: as for `bundle`.
    """
    bundler = _bundler(files, entry)
    bundler.run()
    return bundler.position


def _bundler(files: Mapping[str, bytes], entry: str | None) -> "_Bundler":
    archive = _Files(files)
    return _Bundler(archive, _find_entry(archive) if entry is None else _entry_file(archive, entry))


class _Files:
    """The files of an archive; each is parsed at most once."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.raw = files
        self._trees: dict[str, object] = {}

    def tree(self, file: str) -> object:
        """Return the parsed file.

        Raises:
            InvalidDocument: it is neither JSON nor YAML; the message names the file.
            DocumentTooLarge: it exceeds the limits of a document; the message names the file.
        """
        if file not in self._trees:
            try:
                self._trees[file] = read_tree(self.raw[file])
            except InvalidDocument as error:
                raise type(error)(f"{quote_text(file)}: {error.message}", faults=error.faults) from error
        return self._trees[file]


def _entry_file(files: _Files, entry: str) -> str:
    name = posixpath.normpath(entry)
    if name not in files.raw:
        shown = ", ".join(sorted(files.raw)[:5]) or "none"
        raise _entry_error(f"there is no file {quote_text(entry)}; files are: {shown}")
    return name


def _find_entry(files: _Files) -> str:
    """The one OpenAPI document nearest to the root; reads at most 20 candidates in folders of equal depth.

    A document without paths and webhooks, such as one of shared parameters, counts only if there is no other one.
    """
    partial: list[str] = []
    for group in _by_depth(name for name, raw in files.raw.items() if _may_be_root(name, raw)):
        found = [name for name in group[:MAX_ROOT_CANDIDATES] if _is_root(files, name)]
        whole = [name for name in found if _has_operations(files, name)]
        if whole:
            return _only(whole)
        partial = partial or found
    if partial:
        return _only(partial)
    raise _entry_error("no file is an OpenAPI document")


def _only(found: Sequence[str]) -> str:
    if len(found) > 1:
        raise _entry_error(f"several files are OpenAPI documents: {', '.join(found[:5])}; give one as `entry`")
    return found[0]


def _by_depth(names: Iterator[str]) -> Iterator[list[str]]:
    groups: dict[int, list[str]] = {}
    for name in sorted(names):
        groups.setdefault(name.count("/"), []).append(name)
    yield from (groups[depth] for depth in sorted(groups))


def _may_be_root(name: str, raw: bytes) -> bool:
    return name.lower().endswith(_SUFFIXES) and _ROOT_KEY.search(raw) is not None


def _is_root(files: _Files, name: str) -> bool:
    try:
        root = as_object(files.tree(name))
    except InvalidDocument:
        return False
    return root is not None and ("openapi" in root or "swagger" in root)


def _has_operations(files: _Files, name: str) -> bool:
    root = as_object(files.tree(name)) or {}
    return bool(root.get("paths") or root.get("webhooks"))


def _entry_error(reason: str) -> InvalidDocument:
    return InvalidDocument(f"The archive is refused: {reason}.", faults=[Fault(pointer="", reason=reason)])


class _ComponentNames:
    """Allocator of component names for values that move into the document; names are unique in each section."""

    def __init__(self, root: Object, sections: Mapping[str, Sequence[str]]) -> None:
        self._taken = {kind: set(_section(root, path)) for kind, path in sections.items()}

    def choose(self, kind: str, location: BundleLocation) -> str:
        """Return an unused name: the last pointer token; on a collision, prefixed by path segments, or numbered."""
        name = next(name for name in _candidates(location) if name not in self._taken[kind])
        self._taken[kind].add(name)
        return name


def _candidates(location: BundleLocation) -> Iterator[str]:
    folders, _, last = location.file.rpartition("/")
    words = [*folders.split("/"), last.rpartition(".")[0] or last, *location.tokens[-1:]]
    parts = [part for part in (_NOT_A_NAME.sub("_", word).strip("_") for word in words) if part] or ["value"]
    for length in range(1, len(parts) + 1):
        yield "_".join(parts[-length:])[-MAX_BUNDLED_NAME_LENGTH:]
    yield from (f"{parts[-1][:MAX_BUNDLED_NAME_LENGTH]}_{number}" for number in count(2))


def _section(root: Object, path: Sequence[str]) -> Object:
    for key in path:
        root = object_at(root, key)
    return root


class _Bundler:
    """One pass over the files of one document, beginning with its root file."""

    def __init__(self, files: _Files, entry: str) -> None:
        self._files = files
        self._entry = entry
        self._root = as_object(files.tree(entry)) or {}
        self._sections = SWAGGER_SECTIONS if "swagger" in self._root else SECTIONS
        self._names = _ComponentNames(self._root, self._sections)
        self._component_names: dict[tuple[str, BundleLocation], str] = {}
        self._waiting: deque[tuple[str, BundleLocation, str]] = deque()
        self._in_progress: set[BundleLocation] = set()
        self._nodes = 0
        self._warnings: dict[str, None] = {}
        self._missing: dict[str, None] = {}

    def run(self) -> Bundle:
        """Bundle every value that references reach from the root file."""
        self._reserve_names()
        document = cast("dict[str, object]", self._walk(self._root, self._entry, "document", 0))
        while self._waiting:
            kind, location, name = self._waiting.popleft()
            walked = self._walk(self._value(location), location.file, kind, 0)
            self._ensure_section(document, kind)[name] = walked
        text = orjson.dumps(document)
        missing = tuple(self._missing)[:MAX_MISSING_FILES]
        return Bundle(document=text, entry=self._entry, warnings=tuple(self._warnings), missing=missing)

    def position(self, path: Sequence[str]) -> BundleLocation:
        """Return the position in the files of a value of the bundled document."""
        moved: dict[tuple[str, ...], tuple[str, BundleLocation]] = {
            (*self._sections[kind], name): (kind, start) for (kind, start), name in self._component_names.items()
        }
        size = next((length for length in (2, 3) if tuple(path[:length]) in moved), 0)
        root = BundleLocation(self._entry, ())
        kind, location = moved[tuple(path[:size])] if size else ("document", root)
        waiting = deque(path[size:])
        while waiting:
            token = waiting.popleft()
            location = self._inlined(location, kind, token, waiting)
            kind = kind if as_list(self._value(location)) is not None else kind_of_member(kind, token)
            location = BundleLocation(location.file, (*location.tokens, token))
        return location

    def _inlined(self, location: BundleLocation, kind: str, token: str, waiting: deque[str]) -> BundleLocation:
        """The position of the object that has the token: the value itself, or the target inlined at it."""
        node = as_object(self._value(location)) or {}
        ref = node.get("$ref")
        if kind in self._sections or not isinstance(ref, str) or (token in node and token != PARAMETERS):
            return location
        target = self._locate(ref, location.file)
        if target is None:
            return location
        found = as_object(self._value(target)) or {}
        if token == PARAMETERS and is_beside_reference(found, waiting):
            return location
        return self._inlined(target, kind, token, waiting)

    def _reserve_names(self) -> None:
        """Keep the name of each root component that is only a reference to another file, for the bundled value."""
        for kind, path in self._sections.items():
            for name, node in _section(self._root, path).items():
                found = as_object(node)
                ref = found.get("$ref") if found is not None and len(found) == 1 else None
                location = self._locate(ref, self._entry) if isinstance(ref, str) else None
                if (
                    location is not None
                    and location.file != self._entry
                    and (kind, location) not in self._component_names
                ):
                    self._component_names[kind, location] = name
                    self._waiting.append((kind, location, name))

    def _ensure_section(self, document: dict[str, object], kind: str) -> dict[str, object]:
        section = document
        for key in self._sections[kind]:
            inner = section.get(key)
            if not isinstance(inner, dict):
                inner = section[key] = {}
            section = cast("dict[str, object]", inner)
        return section

    def _walk(self, node: object, file: str, kind: str, depth: int) -> object:
        self._count(depth)
        if kind == LITERAL:
            return node
        items = as_list(node)
        if items is not None:
            return [self._walk(item, file, kind, depth + 1) for item in items]
        found = as_object(node)
        if found is None:
            return node
        ref = found.get("$ref")
        if isinstance(ref, str):
            return self._refer(found, ref, file, (kind, depth))
        return self._copy(found, file, kind, depth)

    def _count(self, depth: int) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise DocumentTooLarge(f"The files of the archive form a document of more than {MAX_NODES} values.")
        if depth > MAX_DEPTH:
            raise DocumentTooLarge(f"The files of the archive form a document of more than {MAX_DEPTH} levels.")

    def _copy(self, node: Object, file: str, kind: str, depth: int) -> dict[str, object]:
        return {
            key: self._walk(value, file, kind_of_member(kind, key), depth + 1)
            for key, value in node.items()
            if key != "$ref" and not (key.startswith("x-") and kind_of_member(kind, key) == LITERAL and _refers(value))
        }

    def _refer(self, node: Object, ref: str, file: str, position: tuple[str, int]) -> object:
        kind, depth = position
        siblings = self._copy(node, file, kind, depth)
        location = self._locate(ref, file)
        if location is None or location in self._in_progress:
            return {"$ref": f"{file}{ref}" if ref.startswith("#") and file != self._entry else ref, **siblings}
        if location.file == self._entry:
            return {"$ref": f"#{point(*location.tokens)}", **siblings}
        if kind in self._sections:
            return {"$ref": f"#{point(*self._sections[kind], self._name(kind, location))}", **siblings}
        self._in_progress.add(location)
        made = self._walk(self._value(location), location.file, kind, depth + 1)
        self._in_progress.remove(location)
        found = as_object(made)
        if found is None:
            return made
        return merge_path_item(found, siblings) if kind == "pathItems" else {**found, **siblings}

    def _name(self, kind: str, location: BundleLocation) -> str:
        if (kind, location) not in self._component_names:
            self._component_names[kind, location] = name = self._names.choose(kind, location)
            self._waiting.append((kind, location, name))
        return self._component_names[kind, location]

    def _value(self, location: BundleLocation) -> object:
        node: object = self._files.tree(location.file)
        for token in location.tokens:
            node, _ = find_step(node, token)
        return node

    def _locate(self, ref: str, file: str) -> BundleLocation | None:
        """The position that a reference names; references inside its path are followed. None if it does not exist."""
        wanted = self._parse(ref, file)
        for _ in range(MAX_REFERENCE_CHAIN):
            if wanted is None:
                return None
            reached = self._follow_path(wanted)
            if isinstance(reached, BundleLocation):
                return reached
            if reached is None:
                self._warn(file, ref, "does not exist")
                return None
            inner = self._parse(reached.ref, wanted.file)
            wanted = inner and BundleLocation(inner.file, (*inner.tokens, *reached.rest))
        self._warn(file, ref, "is a circular reference")
        return None

    def _follow_path(self, location: BundleLocation) -> BundleLocation | _PointerReference | None:
        """The position itself if it exists; otherwise the first reference on its path, if any."""
        node: object = self._files.tree(location.file)
        for index, token in enumerate(location.tokens):
            inner, is_there = find_step(node, token)
            if not is_there:
                found = as_object(node)
                ref = found.get("$ref") if found is not None else None
                return _PointerReference(ref, location.tokens[index:]) if isinstance(ref, str) else None
            node = inner
        return location

    def _parse(self, ref: str, file: str) -> BundleLocation | None:
        path, _, fragment = ref.partition("#")
        if _SCHEME.match(ref):
            return None  # an absolute URL stays in the document; the compiler refuses it
        target = posixpath.normpath(posixpath.join(posixpath.dirname(file), unquote(path))) if path else file
        if target not in self._files.raw:
            self._missing[target] = None
            self._warn(file, ref, "is not in the archive")
            return None
        if fragment and not fragment.startswith("/"):
            self._warn(file, ref, "refers to an anchor, which is not supported")
            return None
        return BundleLocation(target, tuple(ref_tokens(f"#{fragment}")))

    def _warn(self, file: str, ref: str, reason: str) -> None:
        if len(self._warnings) < MAX_BUNDLE_WARNINGS:
            self._warnings[f"{file}: {quote_text(ref)} {reason}"] = None


def _refers(value: object) -> bool:
    """True if the value contains a reference at any depth."""
    stack = [value]
    while stack:
        node = stack.pop()
        found = as_object(node)
        if found is not None:
            if isinstance(found.get("$ref"), str):
                return True
            stack += found.values()
        stack += as_list(node) or ()
    return False
