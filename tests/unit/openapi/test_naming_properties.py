"""Properties of names for all operations of a document."""

import re
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.http.plans import Location
from gateway.openapi.operation.names import BODY, RESERVED, name_arguments, name_tools

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a made-up document."""

    method: str
    path: str
    operation_id: str | None

    @property
    def identity(self) -> str:
        return f"{self.method} {self.path}"


_ids = st.none() | st.text(max_size=90) | st.sampled_from([*sorted(RESERVED), "list", "List", "x" * 70])
_operations = st.lists(
    st.builds(Operation, st.sampled_from(["GET", "POST"]), st.text(max_size=80).map(lambda text: f"/{text}"), _ids),
    unique_by=lambda operation: operation.identity,
    max_size=12,
)
_prefixes = st.none() | st.text(max_size=60)


@given(operations=_operations, prefix=_prefixes)
def test_names_are_allowed_unique_and_not_the_query_tools(operations: list[Operation], prefix: str | None) -> None:
    """Ours: every operation has a name of its own that every client takes (OAS-3)."""
    named = name_tools(operations, prefix=prefix, known={})
    texts = [name.text for name in named.values()]

    assert set(named) == {operation.identity for operation in operations}
    assert all(_NAME.fullmatch(text) for text in texts)
    assert len(set(texts)) == len(texts)
    assert RESERVED.isdisjoint(texts)


@given(operations=_operations, prefix=_prefixes)
def test_names_do_not_depend_on_the_order_of_a_document(operations: list[Operation], prefix: str | None) -> None:
    """Ours: a document written in another order has the same tools."""
    forward = name_tools(operations, prefix=prefix, known={})
    backward = name_tools(operations[::-1], prefix=prefix, known={})

    assert {key: name.text for key, name in forward.items()} == {key: name.text for key, name in backward.items()}


@given(operations=_operations)
def test_names_are_kept_by_the_next_import(operations: list[Operation]) -> None:
    """Ours: an operation that stays keeps the name it had, whatever else comes or goes."""
    before = {key: name.text for key, name in name_tools(operations[::2], prefix=None, known={}).items()}

    after = name_tools(operations, prefix=None, known=before)

    assert {key: after[key].text for key in before} == before


@given(
    parameters=st.lists(
        st.tuples(st.sampled_from(list(Location)), st.text(min_size=1, max_size=90)), max_size=12, unique=True
    )
)
def test_arguments_are_allowed_unique_and_never_the_body(parameters: list[tuple[Location, str]]) -> None:
    """OpenAPI: each parameter has a property of its own."""
    names = name_arguments(parameters)

    assert len(names) == len(parameters)
    assert all(_NAME.fullmatch(name) for name in names)
    assert len(set(names)) == len(names)
    assert BODY not in names
