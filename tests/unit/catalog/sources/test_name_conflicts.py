"""Names an import wants against names that are taken."""

from dataclasses import replace

import orjson
import pytest

from gateway.catalog.sources.name_conflicts import find_prefix, refuse_taken
from gateway.domain.sources import Compilation
from gateway.errors import NameTaken
from gateway.openapi.compiler import compile_document
from gateway.openapi.options import ImportOptions
from tests.support.documents import pets


def _compiled(prefix: str | None = None) -> Compilation:
    return compile_document(orjson.dumps(pets("https://pets.example")), ImportOptions(prefix=prefix))


def test_free_names_pass() -> None:
    """Ours: an import without a clash is not refused."""
    refuse_taken(_compiled(), {"other": "source:b"}, source="pets")


def test_a_clash_names_each_conflict_and_its_owner() -> None:
    """Ours: the refusal names the owner of each name (PRG-4)."""
    with pytest.raises(NameTaken) as caught:
        refuse_taken(_compiled(), {"list_pets": "source:b", "get_pet": "custom"}, source="pets")
    assert [(conflict.name, conflict.owner) for conflict in caught.value.conflicts] == [
        ("get_pet", "custom"),
        ("list_pets", "source:b"),
    ]


def test_the_suggested_prefix_resolves_the_clash() -> None:
    """Ours: importing again with the suggested prefix goes through, whatever was taken before."""
    names = "list_pets", "pets_list_pets", "pets_2_x", "pets_3"
    owners: dict[str, str] = {str(name): "source:b" for name in names}
    with pytest.raises(NameTaken) as caught:
        refuse_taken(_compiled(), owners, source="pets")
    assert caught.value.suggested_prefix == "pets_3"
    assert "pets_3" not in caught.value.message  # faces show both
    refuse_taken(_compiled("pets_3"), owners, source="pets")


def test_names_of_the_query_tools_belong_to_the_gateway() -> None:
    """Ours: the seven query-tool names are reserved in every tenant."""
    compiled = _compiled()
    first = replace(compiled.operations[0], tool="list_endpoints")
    with pytest.raises(NameTaken) as caught:
        refuse_taken(replace(compiled, operations=(first,)), {}, source="pets")
    assert [conflict.owner for conflict in caught.value.conflicts] == ["builtin"]


@pytest.mark.parametrize("source", ["...", "a" * 64, "Pet-Store v2", "get"])
def test_a_prefix_is_made_of_every_name_of_a_source(source: str) -> None:
    """Ours: a suggested prefix is always one that the API accepts."""
    prefix = find_prefix(source, {"get_api_info"})
    assert prefix.isascii()
    assert 1 <= len(prefix) <= 32
    assert not "get_api_info".startswith(f"{prefix}_")
