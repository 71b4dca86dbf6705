"""Cuts of answers, for values of every shape and for hostile documents."""

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.openapi.query.answers import QueryRefused
from gateway.openapi.query.api import ApiView
from gateway.openapi.query.limits import MAX_ANSWER_BYTES, MAX_PAGE_BYTES, MAX_PER_PAGE
from gateway.openapi.query.sizes import Sizes, measure
from gateway.openapi.query.truncation import fit, render
from tests.support.queries import Reader, ask, view_of

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=25,
)


@given(VALUES, st.integers(0, 5))
def test_sizes_are_those_of_the_text(value: object, level: int) -> None:
    """Ours: adding up members gives exactly the bytes that writing the value gives."""
    assert Sizes().of(value, level) == measure(value, level)
    assert measure(value) == len(render(value).encode())


@given(st.dictionaries(st.text(max_size=30), VALUES, max_size=30), st.integers(2_000, 4_000))
def test_a_fitting_answer_is_unchanged_and_others_are_cut(value: dict[str, Any], limit: int) -> None:
    """Ours: the text is never longer than the limit."""
    large = {"whole": value, "more": [value] * 40}
    fitted = fit(large, limit=limit)

    assert measure(fitted) <= limit
    assert (fitted == large) == (measure(large) <= limit)


def document(paths: dict[str, Any] | None = None, **schemas: Any) -> dict[str, Any]:
    """A document of these paths and schemas."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "T", "version": "1"},
        "servers": [{"url": "https://api.example.com"}],
        "paths": paths or {"/x": {"get": {"responses": {"200": {"description": "ok"}}}}},
        "components": {"schemas": schemas},
    }


def nested(leaf: Any, levels: int) -> Any:
    """An object in an object in an object."""
    for _ in range(levels):
        leaf = {"type": "object", "properties": {"inside": leaf}}
    return leaf


NASTY: dict[str, Any] = {
    "one long text": {"description": "x" * 3_000_000},
    "a text of characters that are written longer": {"description": '\u0001"\\' * 200_000},
    "many values": {"enum": [f"value {number}" for number in range(15_000)]},
    "a large leaf far in": nested({"description": "y" * 500_000}, 45),
    "names that are written longer": {"properties": {'n"\\' * 50 + str(n): {"type": "string"} for n in range(500)}},
    "lists in lists": {"examples": [[[["z" * 100] * 50] * 20] * 10]},
    "many texts": {"properties": {f"p{n}": {"description": "d" * 2_000} for n in range(200)}},
}


@pytest.mark.parametrize("kind", NASTY)
def test_any_schema_can_be_read_to_its_end(kind: str) -> None:
    """Ours: 32 KB each time, and together the whole (OAS-5)."""
    schema = NASTY[kind]
    reader = Reader(view_of(document(S=schema)), "get_schema_details", name="S")

    if len(json.dumps(schema)) > 1_000_000:  # more than a client follows: the next pointer is there
        first = cast("Any", ask("get_schema_details", view_of(document(S=schema)), name="S"))
        assert "$cut" in render(first) or "[truncated; " in render(first)
        assert len(render(first).encode()) <= MAX_ANSWER_BYTES
        return
    assert reader.read()["schema"] == schema
    assert reader.largest <= MAX_ANSWER_BYTES


def test_names_too_long_for_a_pointer_are_cut_as_well() -> None:
    """Ours: a name of 40,000 letters is shown in part, without a pointer that no client could send (OAS-5)."""
    schema = {"properties": {letter * 40_000: {"description": letter * 40_000} for letter in "abc"}}
    answer = ask("get_schema_details", view_of(document(S=schema)), name="S")

    assert len(render(answer).encode()) <= MAX_ANSWER_BYTES
    assert set(cast("Any", answer["schema"])["properties"]["a" * 1_999 + "…"]["$cut"]) == {"bytes"}


def test_resolving_ends_within_the_depth_of_readers() -> None:
    """Ours: answers go no deeper than JSON readers do; further in, references stay (OAS-5)."""
    links = {f"S{n}": nested({"$ref": f"#/components/schemas/S{n + 1}"}, 30) for n in range(30)}
    seen = view_of(document(**links, S30={"type": "string"}))
    for name in ("S0", "S29"):
        answer = Reader(seen, "get_schema_details", name=name, resolve=True).read()
        assert depth_of(answer) < 190
    opened = [Reader(seen, "get_schema_details", name="S0", depth=depth).part("/schema") for depth in (0, 1)]
    assert depth_of(opened[1]) > depth_of(opened[0])
    assert "$ref" in json.dumps(Reader(seen, "get_schema_details", name="S0", resolve=True).part("/schema"))


def depth_of(value: Any) -> int:
    """Number of levels of a value."""
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        node, level = waiting.pop()
        deepest = max(deepest, level)
        if isinstance(node, dict):
            waiting += [(item, level + 1) for item in cast("dict[str, Any]", node).values()]
        elif isinstance(node, list):
            waiting += [(item, level + 1) for item in cast("list[object]", node)]
    return deepest


def test_everything_leading_everywhere_is_resolved_within_bounds() -> None:
    """Ours: sixty schemas that all refer to each other are no way to an endless answer (OAS-5)."""
    crowd = {
        f"S{n}": {"properties": {f"p{m}": {"$ref": f"#/components/schemas/S{m}"} for m in range(60)}} for n in range(60)
    }
    answer = ask("get_schema_details", view_of(document(**crowd)), name="S0", resolve=True)

    assert len(render(answer).encode()) <= MAX_ANSWER_BYTES
    assert len(cast("list[str]", answer["dependencies"])) == 60


@pytest.fixture(scope="module")
def tagged() -> ApiView:
    """Operations that have each a hundred long tags of their own."""
    tags = {n: [f"{'t' * 180} {n} {tag}" for tag in range(100)] for n in range(120)}
    answer = {"responses": {"200": {"description": "ok"}}}
    return view_of(document({f"/p{n}": {"get": {"tags": tags[n], **answer}} for n in range(120)}))


def test_a_page_ends_where_it_has_enough(tagged: ApiView) -> None:
    """Ours: a page has as many items as were asked for unless they are very large; the cursor leads on (OAS-5)."""
    paths: list[str] = []
    for _ in range(30):
        page = cast("Any", ask("list_endpoints", tagged, limit=MAX_PER_PAGE, offset=len(paths)))
        assert len(render(page).encode()) <= MAX_PAGE_BYTES + 1024
        paths += [item["path"] for item in page["endpoints"]]
        if "nextCursor" not in page:
            break
        assert page["nextCursor"] == str(len(paths))

    assert paths == [f"/p{n}" for n in range(120)]


def test_the_overview_is_bounded(tagged: ApiView) -> None:
    """Ours: 12,000 tags are counted in the document, not listed; of many sources each shows fewer (OAS-5)."""
    alone = ask("get_api_info", tagged)
    together = ask(
        "get_api_info", *(ApiView(source=f"s{n}", api=tagged.api, tools={}, is_whole=True) for n in range(20))
    )

    assert 0 < len(cast("list[str]", alone["tags"])) < 12_000
    assert len(render(alone).encode()) <= MAX_ANSWER_BYTES
    assert len(render(together).encode()) <= MAX_ANSWER_BYTES
    assert len(cast("list[Any]", together["sources"])) == 20


@pytest.mark.parametrize(
    "pointer", ["schema", "/nothing", "/schema/~", "/schema/properties/-1", "/schema/enum/9999999999", "/" * 3_000]
)
def test_a_pointer_without_a_target_is_an_error(pointer: str) -> None:
    """RFC 6901: a pointer that does not lead to a part of the answer is an error that names the parts (OAS-5)."""
    with pytest.raises(QueryRefused, match="nothing at the pointer") as refused:
        ask("get_schema_details", view_of(document(S={"enum": [1]})), name="S", pointer=pointer)

    assert "/schema" in refused.value.suggestions
