"""Manifests read as a command reads them."""

from pathlib import Path

from gateway.cli.failures import Failure, describe_fault
from gateway.cli.input.json_fields import JsonObject
from gateway.cli.manifests.documents import DocumentReader
from gateway.cli.manifests.files import FileReader
from gateway.cli.manifests.manifest import Manifest, ManifestReader
from gateway.cli.manifests.members import map_secrets, members_by_name
from gateway.cli.manifests.places import ManifestFaults
from gateway.kinds.manifests import MANIFEST_KINDS, key_member, name_in_manifests
from gateway.kinds.singleton import Singleton

PROFILE = "apiVersion: gateway/v1\nkind: profile\nname: {name}\n"


VARIABLE = "SECRET_OF_EXAMPLES"
"""The variable of all secrets of examples."""


def key_of_example(name: str) -> object:
    """The key of the example of a kind, which may be a part of its definition; None for a singleton."""
    kind = MANIFEST_KINDS[name]
    key = key_member(kind)
    if key is None or isinstance(kind, Singleton):
        return None
    return kind.example.get(key) or kind.key_sent(kind.example)


def example_of(name: str) -> JsonObject:
    """The manifest of the example of a kind, whose secrets are references to a variable."""
    kind = MANIFEST_KINDS[name]
    key = key_member(kind)
    members: JsonObject = {name_in_manifests(each): value for each, value in kind.example.items() if each != key}
    return {
        "apiVersion": "gateway/v1",
        "kind": name,
        **({} if key is None else {key: key_of_example(name)}),
        **map_secrets(members_by_name(kind), members, lambda _, __: {"env": VARIABLE}),
    }


def read(*specs: object, tenant: str | None = "acme", leaves_folder: bool = False) -> list[Manifest]:
    """The manifests of files and folders.

    Raises:
        Failure: there are faults.
    """
    faults = ManifestFaults()
    texts = FileReader(faults=faults, leaves_folder=leaves_folder).read([str(each) for each in specs])
    documents = DocumentReader(faults=faults).read(texts)
    found = ManifestReader(faults=faults, tenant=tenant, leaves_folder=leaves_folder).read(documents)
    faults.check()
    return found


def faults_of(*specs: object, tenant: str | None = "acme", leaves_folder: bool = False) -> list[str]:
    """The faults of files and folders, as lines without the folder."""
    try:
        read(*specs, tenant=tenant, leaves_folder=leaves_folder)
    except Failure as failure:
        folders = [spec if spec.is_dir() else spec.parent for spec in specs if isinstance(spec, Path)]
        lines = [describe_fault(one) for one in failure.faults]
        for folder in folders:
            lines = [line.replace(f"{folder}/", "") for line in lines]
        return lines
    return []


def write(folder: Path, **files: str) -> Path:
    """Write files whose names have `__` for `/`, and `_` for the dot of their ending."""
    for name, text in files.items():
        stem, _, ending = name.rpartition("_")
        path = folder.joinpath(*f"{stem}.{ending}".split("__"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
