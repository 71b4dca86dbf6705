"""Models of wanted objects: one for each kind and singleton, and the JSON Schema of manifests, for editors."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, cast

from pydantic import Field

from gateway.kinds.manifests import API_VERSION, MANIFEST_KINDS, Declared, name_in_manifests
from gateway.kinds.members import cached, settable
from gateway.kinds.singleton import Singleton
from gateway.web.kinds.annotations import make_model, sent_fields
from gateway.web.kinds.singleton_models import singleton_models_of
from gateway.web.models import BodyModel

_TENANT = {"type": "string", "description": "The tenant's slug; by default the one that the command names."}
_MOVED = {"type": "string", "description": "The former name; the object keeps its id and its secrets."}
_REFERENCES = [
    {"type": "object", "properties": {each: {"type": "string"}}, "required": [each], "additionalProperties": False}
    for each in ("env", "file")
]
"""The forms of a secret that the command line reads on its machine."""
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


@cached
def manifest_model(kind: Declared) -> type[BodyModel]:
    """The model of a wanted object: its members, with the name, if the kind has one."""
    if isinstance(kind, Singleton):
        return singleton_models_of(kind).wanted
    name = Annotated[str, Field(pattern=kind.form, description=kind.name_about)]
    named: dict[str, tuple[Any, Any]] = {kind.keyed: (name, ...)} if kind.shows_key else {}
    about = f"A complete {kind.words}; absent fields have their default."
    return make_model(f"{kind.stem}Manifest", BodyModel, about, {**named, **sent_fields(settable(kind.of))})


@cache
def manifest_schema() -> Mapping[str, object]:
    """The JSON Schema of one document of a manifest, of any kind."""
    shared: dict[str, object] = {}
    branches: dict[str, object] = {}
    for name, kind in MANIFEST_KINDS.items():
        schema = manifest_model(kind).model_json_schema(ref_template="#/$defs/{model}")
        shared |= cast("dict[str, object]", schema.pop("$defs", {}))
        branches[f"manifest_{name}"] = {**schema, **_members(name, kind, schema)}
    return {
        "$schema": _DIALECT,
        "title": "manifest",
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {"apiVersion": {"const": API_VERSION}, "kind": {"enum": list(MANIFEST_KINDS)}},
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in branches],
        "$defs": {**{name: _with_references(value) for name, value in shared.items()}, **branches},
    }


def _with_references(schema: object) -> object:
    """The schema of a class within an object, in which a secret can be a reference too."""
    if isinstance(schema, dict):
        members = cast("dict[str, object]", schema)
        mapped = {name: _with_references(each) for name, each in members.items()}
        return {"anyOf": [mapped, *_REFERENCES]} if members.get("writeOnly") is True else mapped
    return [_with_references(each) for each in cast("list[object]", schema)] if isinstance(schema, list) else schema


def _members(name: str, kind: Declared, schema: Mapping[str, Any]) -> Mapping[str, object]:
    """The members of a document: those of the object, and those of every manifest."""
    own = {"apiVersion": {"const": API_VERSION}, "kind": {"const": name}, "tenant": _TENANT}
    moved = {} if isinstance(kind, Singleton) or not kind.is_renamed else {"moved": _MOVED}
    secrets = {each.name for each in settable(kind.of) if each.is_secret}
    members = {
        name_in_manifests(each): {"anyOf": [value, *_REFERENCES]} if each in secrets else value
        for each, value in schema["properties"].items()
    }
    required = ["apiVersion", "kind", *map(name_in_manifests, schema.get("required", []))]
    return {"properties": {**own, **moved, **members}, "required": required}
