"""The API schemas of Kubernetes, version by version, from a package that carries them: nothing is fetched.

Its strict schemas refuse fields that the version does not have.
"""

import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema_rs

_STRICT = "v{version}.0-local-strict"


def faults_of(manifest: dict[str, Any], version: str) -> list[str]:
    """Fields that this version would refuse, and their places."""
    group, _, api = str(manifest["apiVersion"]).rpartition("/")
    kind = str(manifest["kind"]).lower()
    name = "-".join(part for part in (kind, group.partition(".")[0], api) if part)
    validator = _validator(version, name)
    return [f"{'/'.join(map(str, error.instance_path))}: {error.message}" for error in validator.iter_errors(manifest)]


@cache
def _validator(version: str, name: str) -> jsonschema_rs.Draft202012Validator:
    folder = _schemas() / _STRICT.format(version=version)
    schema: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    definitions: dict[str, Any] = json.loads((folder / "_definitions.json").read_text())
    registry = jsonschema_rs.Registry([(f"{_BASE}_definitions.json", definitions)])
    placed = {key: value for key, value in schema.items() if key != "$schema"}
    return jsonschema_rs.Draft202012Validator(
        placed, registry=registry, offline=True, base_uri=f"{_BASE}{name}.json", validate_formats=False
    )


_BASE = "json-schema:///kubernetes/"


def _schemas() -> Path:
    found = find_spec("kubernetes_validate")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "kubernetes-json-schema"
