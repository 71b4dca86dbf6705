"""Real public OpenAPI documents, kept outside the repository: each has its own licence."""

import gzip
import json
from functools import cache
from pathlib import Path
from typing import cast

import pytest

_FOLDER = Path(__file__).parents[2] / ".." / "shared" / "specs"
_MISSING = "missing"


def specs_dir() -> Path:
    """The folder of documents; a test that asks for it is skipped where it is missing."""
    if not (_FOLDER / "index.json").is_file():
        pytest.skip("the folder of real documents (../shared/specs) is not here")
    return _FOLDER


def load_spec(name: str) -> bytes:
    """One document by its file name, such as `github.json`."""
    return gzip.decompress((specs_dir() / f"{name}.gz").read_bytes())


def load_document(name: str) -> bytes:
    """One document of the second folder (../shared/look-3/documents); a test that asks for it is skipped without it."""
    path = _FOLDER / ".." / "look-3" / "documents" / f"{name}.gz"
    if not path.is_file():
        pytest.skip("the folder of real documents (../shared/look-3/documents) is not here")
    return gzip.decompress(path.read_bytes())


def all_specs() -> list[str]:
    """The names of all documents of one file, for parametrising; one that skips where the folder is missing."""
    return sorted(_index()) or [_MISSING]


def declared_operations(name: str) -> int:
    """Number of operations of the document, by the index beside it."""
    specs_dir()
    return cast("int", _index()[name]["operations"])


@cache
def _index() -> dict[str, dict[str, object]]:
    listing = _FOLDER / "index.json"
    entries: list[dict[str, object]] = json.loads(listing.read_bytes()) if listing.is_file() else []
    return {str(entry["file"]): entry for entry in entries if not str(entry["file"]).endswith(".tar.gz")}
