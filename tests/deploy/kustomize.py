"""Result of `kustomize build` for our folders, for the few features they use; other features are refused."""

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import yaml

Manifest = dict[str, Any]

_KNOWN = {"apiVersion", "kind", "namespace", "resources", "components", "images", "patches", "nameSuffix"}
_CLUSTER_WIDE = {"Namespace"}
_KEYS = {"containers": "name", "initContainers": "name", "env": "name", "volumes": "name", "volumeMounts": "mountPath"}
"""The lists that a strategic merge joins by a key; others are replaced whole."""


def build(folder: Path) -> list[Manifest]:
    """The manifests of a folder with a kustomization."""
    return _apply(folder, [])


def _apply(folder: Path, found: list[Manifest]) -> list[Manifest]:
    reported = cast(Manifest, yaml.safe_load((folder / "kustomization.yaml").read_text()))
    assert set(reported) <= _KNOWN, f"{folder}: this renderer does not know {set(reported) - _KNOWN}"
    own = [manifest for name in reported.get("resources", []) for manifest in _resource(folder / name)]
    manifests = [*found, *own]
    for name in reported.get("components", []):
        manifests = _apply(folder / name, manifests)
    for patch in reported.get("patches", []):
        manifests = _patched(manifests, folder / patch["path"], patch.get("target"))
    for image in reported.get("images", []):
        manifests = [cast(Manifest, _with_image(manifest, image)) for manifest in manifests]
    for manifest in manifests:
        if "namespace" in reported and manifest["kind"] not in _CLUSTER_WIDE:
            manifest["metadata"]["namespace"] = reported["namespace"]
        manifest["metadata"]["name"] += reported.get("nameSuffix", "")
    return manifests


def _resource(path: Path) -> list[Manifest]:
    return build(path.resolve()) if path.is_dir() else list(_documents(path))


def _documents(path: Path) -> Iterator[Manifest]:
    for document in yaml.safe_load_all(path.read_text()):
        yield cast(Manifest, document)


def _patched(manifests: list[Manifest], path: Path, target: Mapping[str, str] | None) -> list[Manifest]:
    if target is not None:
        return _with_operations(manifests, cast(list[Manifest], yaml.safe_load(path.read_text())), target)
    for change in _documents(path):
        manifests = _patch(manifests, change)
    return manifests


def _with_operations(
    manifests: list[Manifest], operations: list[Manifest], target: Mapping[str, str]
) -> list[Manifest]:
    """The operations of a JSON patch made on what has this kind and name; where nothing has them, nothing is done."""
    changed = copy.deepcopy(manifests)
    for manifest in changed:
        if (manifest["kind"], manifest["metadata"]["name"]) == (target["kind"], target["name"]):
            for operation in operations:
                _operate(manifest, **operation)
    return changed


def _operate(manifest: Manifest, *, op: str, path: str, value: object) -> None:
    assert op in {"add", "replace"}, f"this renderer does not know {op}"
    *above, last = (part.replace("~1", "/").replace("~0", "~") for part in path.removeprefix("/").split("/"))
    place: Any = manifest
    for part in above:
        place = place[int(part) if part.isdecimal() else part]
    key = int(last) if last.isdecimal() else last
    assert op == "add" or place[key] is not None, f"{path}: there is nothing to replace"
    place[key] = value


def _patch(manifests: list[Manifest], change: Manifest) -> list[Manifest]:
    target = (change["kind"], change["metadata"]["name"])
    hit = [manifest for manifest in manifests if (manifest["kind"], manifest["metadata"]["name"]) == target]
    assert len(hit) == 1, f"a patch of {target} finds {len(hit)}"
    if change.get("$patch") == "delete":
        return [manifest for manifest in manifests if manifest is not hit[0]]
    return [_merged_fields(manifest, change) if manifest is hit[0] else manifest for manifest in manifests]


def _merged(old: object, new: object, field: str = "") -> object:
    if isinstance(old, dict) and isinstance(new, dict):
        return _merged_fields(cast(Manifest, old), cast(Manifest, new))
    if field in _KEYS and isinstance(old, list):
        return _merged_items(cast(list[Manifest], old), cast(list[Manifest], new), _KEYS[field])
    return new


def _merged_fields(old: Manifest, new: Manifest) -> Manifest:
    result = dict(old)
    for name, value in new.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result[name], value, name) if name in result else value
    return result


def _merged_items(old: list[Manifest], new: list[Manifest], key: str) -> list[Manifest]:
    joined = {item[key]: item for item in old}
    for item in new:
        joined[item[key]] = _merged_fields(joined.get(item[key], {}), item)
    return list(joined.values())


def _with_image(value: object, image: Mapping[str, str]) -> object:
    """The value with this image wherever its name occurs."""
    if isinstance(value, dict):
        return {
            name: f"{image['newName']}:{image['newTag']}"
            if name == "image" and part == image["name"]
            else _with_image(part, image)
            for name, part in cast(Manifest, value).items()
        }
    if not isinstance(value, list):
        return value
    return [_with_image(part, image) for part in cast(list[object], value)]
