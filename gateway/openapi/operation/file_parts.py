"""File parts of a body, and the rewriting of its schema so that a caller passes files as `{"base64", …}`."""

from collections.abc import Sequence

from gateway.domain.http.plans import BodyKind
from gateway.domain.json_access import Object, as_list, as_object
from gateway.openapi.document.json_access import NOTHING, Unusable, list_at, object_at, text_at
from gateway.openapi.document.references import References
from gateway.openapi.operation.limits import MAX_FILE_DEPTH, MAX_REWRITTEN
from gateway.openapi.operation.media_types import is_media_type, kind_of
from gateway.openapi.schema.all_of import merged_schemas

FILE: Object = {
    "type": "object",
    "properties": {
        "base64": {"type": "string", "contentEncoding": "base64", "description": "The bytes of the file in base64"},
        "filename": {"type": "string"},
        "content_type": {"type": "string"},
    },
    "required": ["base64"],
    "additionalProperties": False,
}
"""The schema of a file argument; it is valid in every version of OpenAPI."""

_CHOICES = ("anyOf", "oneOf")
_BRANCHES = ("allOf", *_CHOICES)

_Found = dict[tuple[int, int], object]
"""The results of one search, by schema and depth: schemas that are reached by several ways are searched once."""


class FileParts:
    """The files in the bodies of one document."""

    def __init__(self, references: References) -> None:
        self._references = references

    def target(self, node: object) -> Object:
        """Return the node, or the schema at the end of its references; an empty schema if there is none."""
        if as_object(node) is None:
            return NOTHING
        try:
            return self._references.follow(node, "a schema")
        except Unusable:
            return NOTHING

    def value(self, node: object) -> Object:
        """Return the keywords that apply to a value: those of the schema and of its `allOf`, the nearest of each name.

        OpenAPI 3.0 ignores keywords beside `$ref`, so documents put the reference into an `allOf`.
        """
        target = self.target(node)
        if "allOf" not in target:
            return target
        united: dict[str, object] = {}
        for schema in reversed(merged_schemas(target, self._references)):
            united |= {key: value for key, value in schema.items() if key not in {"$ref", "allOf"}}
        return united

    def is_file(self, node: object) -> bool:
        """True if values of the schema, or of a branch of it, are bytes that are sent unencoded."""
        return self._has_file(node, 0, {})

    def is_files(self, node: object) -> bool:
        """True if values of the schema may be lists of files."""
        merged = merged_schemas(node, self._references)
        branches = [*merged, *(self.value(part) for one in merged for key in _CHOICES for part in list_at(one, key))]
        found: _Found = {}
        return any("items" in branch and self._has_file(branch["items"], 0, found) for branch in branches)

    def with_file_arguments(self, schema: object) -> object:
        """Return the schema of an object, with `FILE` in place of the schemas of files in its properties.

        Lists and branches are searched six levels deep. A schema without files is returned unchanged and stays shared.

        Raises:
            Unusable: the files are in too many schemas.
        """
        return _FileArguments(self).rewrite_object(schema, 0)

    def _has_file(self, node: object, depth: int, found: _Found) -> bool:
        target = self.target(node)
        key = id(target), depth
        if key not in found:
            parts = self.branches(target) if depth < MAX_FILE_DEPTH else []
            is_bytes = is_binary(self.value(target))
            found[key] = is_bytes or any(self._has_file(part, depth + 1, found) for part in parts)
        return found[key] is True

    def branches(self, target: Object) -> list[object]:
        """Return the parts of a schema in which files are searched if it is no file itself.

        A part of `allOf` that would be a file alone is left out: the keywords beside it describe another value.
        """
        branches = [part for key in _CHOICES for part in list_at(target, key)]
        return branches + [part for part in list_at(target, "allOf") if not is_binary(self.value(part))]


class _FileArguments:
    """One rewriting of a schema."""

    def __init__(self, files: FileParts) -> None:
        self._files = files
        self._objects: _Found = {}
        self._values: _Found = {}
        self._opened: set[int] = set()
        self._sizes: dict[int, int] = {}
        """Number of rewritten schemas in each rewritten schema, which are no longer shared when they are listed."""

    def rewrite_object(self, node: object, depth: int) -> object:
        """Return the schema with files replaced; the same object if it has none."""
        target = self._files.target(node)
        key = id(target), depth
        if depth >= MAX_FILE_DEPTH or id(target) in self._opened:
            return node
        if key not in self._objects:
            self._opened.add(id(target))
            self._objects[key] = self._object(target, depth)
            self._opened.remove(id(target))
        changed = self._objects[key]
        return node if changed is None else changed

    def _object(self, target: Object, depth: int) -> object:
        """The rewritten schema; None if it has no files."""
        changed: dict[str, object] = {}
        properties = object_at(target, "properties")
        replaced = {name: self._value(part, 0) for name, part in properties.items()}
        if any(replaced[name] is not properties[name] for name in replaced):
            changed["properties"] = replaced
        if as_object(others := target.get("additionalProperties")) is not None:
            changed |= _if_changed("additionalProperties", others, self._value(others, 0))
        for key in _BRANCHES:
            parts = list_at(target, key)
            changed |= _if_any_changed(key, parts, [self.rewrite_object(part, depth + 1) for part in parts])
        return self._whole(target, changed) if changed else None

    def _value(self, node: object, depth: int) -> object:
        target = self._files.target(node)
        key = id(target), depth
        if key not in self._values:
            self._values[key] = self._rewritten_value(target, depth)
        changed = self._values[key]
        return node if changed is None else changed

    def _rewritten_value(self, target: Object, depth: int) -> object:
        """The rewritten schema; None if it has no files."""
        if is_binary(value := self._files.value(target)):
            kept = {key: value[key] for key in ("title", "description", "nullable", "deprecated") if key in value}
            return self._whole(FILE, kept)
        if depth >= MAX_FILE_DEPTH:
            return None
        changed: dict[str, object] = {}
        if "items" in target:
            changed |= _if_changed("items", target["items"], self._value(target["items"], depth + 1))
        searched = {id(part) for part in self._files.branches(target)}
        for key in _BRANCHES:
            parts = list_at(target, key)
            after = [self._value(part, depth + 1) if id(part) in searched else part for part in parts]
            changed |= _if_any_changed(key, parts, after)
        return self._whole(target, changed) if changed else None

    def _whole(self, target: Object, changed: Object) -> Object:
        whole = {**target, **changed}
        parts = [part for key in _BRANCHES for part in list_at(changed, key)]
        parts += [*object_at(changed, "properties").values(), changed.get("items"), changed.get("additionalProperties")]
        size = 1 + sum(self._sizes.get(id(part), 0) for part in parts)
        if size > MAX_REWRITTEN:
            raise Unusable(f"the files of its body are in more than {MAX_REWRITTEN} schemas")
        self._sizes[id(whole)] = size
        return whole


def is_binary(schema: Object) -> bool:
    """True if the schema describes raw bytes: `format: binary`, type `file`, or an unencoded binary content type."""
    named = schema.get("type")
    types = as_list(named) or (named,)
    if "file" in types:
        return True
    if schema.get("format") == "binary" and ("string" in types or named is None):
        return True
    media_type = text_at(schema, "contentMediaType")
    if media_type is None or "contentEncoding" in schema or not (named is None or "string" in types):
        return False
    return is_media_type(media_type) and kind_of(media_type, is_text=False) is BodyKind.BYTES


def is_encoded(schema: Object) -> bool:
    """True if the schema describes bytes encoded as text; they are sent in that encoding."""
    return "contentEncoding" in schema or schema.get("format") in ("byte", "base64")


def _if_changed(key: str, before: object, after: object) -> dict[str, object]:
    return {} if after is before else {key: after}


def _if_any_changed(key: str, before: Sequence[object], after: Sequence[object]) -> dict[str, object]:
    return {key: after} if any(new is not old for new, old in zip(after, before, strict=True)) else {}
