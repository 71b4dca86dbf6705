"""The parameters in the URI of a stored result."""

import pytest

from gateway.definitions.large_results.pages import ElementCondition, PartRequest
from gateway.errors import ArgumentsInvalid
from gateway.handlers.result_reader import request_of_query


@pytest.mark.parametrize(
    ("query", "request_"),
    [
        ("", PartRequest()),
        ("pointer=/items/7&offset=3&limit=10", PartRequest(pointer="/items/7", offset=3, limit=10)),
        ("pointer=%2Fa~1b%20c", PartRequest(pointer="/a~1b c")),
        ("where=/n&equals=7", PartRequest(where=(ElementCondition(pointer="/n", equals=("7", 7)),))),
        ("equals=", PartRequest(where=(ElementCondition(equals=("",)),))),
        ("equals=null", PartRequest(where=(ElementCondition(equals=("null", None)),))),
        ("where=/s&contains=NaMe", PartRequest(where=(ElementCondition(pointer="/s", contains="name"),))),
    ],
)
def test_a_query_describes_a_part(query: str, request_: PartRequest) -> None:
    """Ours: the same reads as with the tool, for clients with resources (OAS-10)."""
    assert request_of_query(query) == request_


@pytest.mark.parametrize(
    "query",
    [
        "x=1",
        "pointer=a",
        "pointer=/~2",
        "pointer=/" + "a" * 5000,
        "offset=-1",
        "offset=1e3",
        "offset=" + "9" * 20,
        "offset=٣",
        "limit=20000",
        "offset=1&offset=2",
        "where=/a",
        "contains=" + "x" * 1001,
        "where=/" + "a" * 200 + "&equals=1",
        "&".join("offset=1" for _ in range(20)),
    ],
)
def test_a_wrong_query_is_refused(query: str) -> None:
    """Ours: unknown, repeated and unbounded parameters are errors of the caller."""
    with pytest.raises(ArgumentsInvalid):
        request_of_query(query)
