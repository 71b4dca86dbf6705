"""Tool names: allowed, short, unique, and the same next time."""

from typing import Any

import pytest

from gateway.openapi.operation.names import RESERVED
from tests.support.openapi import compile_it, document


def names(*operations: tuple[str, str, str | None], **options: Any) -> dict[str, str]:
    paths: dict[str, Any] = {}
    for method, path, operation_id in operations:
        paths.setdefault(path, {})[method] = {} if operation_id is None else {"operationId": operation_id}
    return {made.identity: made.tool for made in compile_it(document(paths), **options).operations}


@pytest.mark.parametrize(
    ("operation_id", "path", "name"),
    [
        ("listPets", "/p", "listPets"),
        ("meta/root", "/p", "meta_root"),
        ("a b  c!", "/p", "a_b_c"),
        ("über.alles-1", "/p", "ber.alles-1"),
        (None, "/users/{id}/posts", "get_users_id_posts"),
        (None, "/", "get"),
        ("???", "/p", "get_p"),
        ("", "/p", "get_p"),
    ],
)
def test_a_name_comes_from_the_id_or_from_method_and_path(operation_id: str | None, path: str, name: str) -> None:
    """Ours: foreign characters separate, they do not vanish."""
    assert list(names(("get", path, operation_id)).values()) == [name]


def test_a_long_name_is_cut_and_stays_its_own() -> None:
    """Ours: at most 64 characters, a digest inside the limit."""
    named = names(("get", "/a", "x" * 100), ("get", "/b", "x" * 101), prefix="acme")

    assert all(len(name) == 64 and name.startswith("acme_xxx") for name in named.values())
    assert len(set(named.values())) == 2


def test_equal_ids_all_get_a_digest() -> None:
    """Ours: the order of the document decides nothing."""
    first = names(("get", "/a", "same"), ("get", "/b", "same"))
    second = names(("get", "/b", "same"), ("get", "/a", "same"))

    assert first == second
    assert len(set(first.values())) == 2
    assert all(name.startswith("same_") and len(name) == 13 for name in first.values())


@pytest.mark.parametrize(
    ("prefix", "name"), [("acme", "acme_op"), ("acme.", "acme.op"), ("a b", "a_b_op"), ("", "op"), (None, "op")]
)
def test_a_prefix_is_part_of_the_name(prefix: str | None, name: str) -> None:
    """Ours: the limit counts it."""
    assert list(names(("get", "/a", "op"), prefix=prefix).values()) == [name]


def test_a_known_operation_keeps_its_name() -> None:
    """Ours: names survive re-imports, also when the document gives the name to another operation."""
    named = names(("get", "/a", "new"), ("get", "/b", "old"), known_names={"GET /a": "old", "GET /gone": "gone"})

    assert named["GET /a"] == "old"
    assert named["GET /b"].startswith("old_")


def test_the_name_of_an_operation_that_is_gone_is_not_given_away() -> None:
    """Ours: a name never comes to mean something else."""
    assert names(("get", "/a", "gone"), known_names={"GET /gone": "gone"})["GET /a"] != "gone"


@pytest.mark.parametrize("reserved", sorted(RESERVED))
def test_names_of_the_query_tools_are_not_given(reserved: str) -> None:
    """Ours: the seven names are reserved."""
    assert names(("get", "/a", reserved))["GET /a"].startswith(f"{reserved}_")


def test_names_that_differ_from_their_ids_are_noted_once() -> None:
    """Ours: replaced characters, and the listed form of a name, are one note each however many tools have them."""
    ids = ["a b", "c/d", "_e", "users.list", "pets.list", "plain"]
    notes = compile_it(document({f"/{n}": {"get": {"operationId": each}} for n, each in enumerate(ids)})).report.notes

    assert notes == (
        "2 tools are listed under another name, which every client takes: users_list for users.list; calls take both",
        "GET /0 and 2 more: characters of its operationId that the name of a tool may not have are replaced",
    )


def test_a_changed_name_is_explained() -> None:
    """Ours: the report lists the names that are not the plain ones, and the reasons."""
    note = compile_it(document({"/a": {"get": {"operationId": "x" * 70}}})).report.notes[-1]

    assert "longer than 64" in note
