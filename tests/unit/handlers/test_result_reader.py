"""The parameters in the URI of a stored result."""

import threading
from collections.abc import Callable
from typing import Any, cast

import anyio
import msgspec
import pytest

from gateway.definitions.large_results.element_conditions import ElementCondition
from gateway.definitions.large_results.pages import PartRequest
from gateway.domain.calls.limits import MAX_STORED_BYTES
from gateway.domain.identifiers import TenantId
from gateway.domain.results import StoredResult
from gateway.errors import ArgumentsInvalid, HandlerFailed
from gateway.handlers.response_body.result_processes import ResultProcesses
from gateway.handlers.result_reader import ResultReader, request_of_query, size_as_json
from gateway.upstream.body_room import BodyRoom
from gateway.upstream.limits import ROOM_UNIT_BYTES


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


class _SlowStore:
    """Counts the reads that are under way."""

    def __init__(self) -> None:
        self.under_way = 0
        self.peak = 0

    async def read(self, tenant: TenantId, owner: str, uri: str) -> StoredResult:
        """Return a result after the other reads had their chance to begin."""
        del tenant, owner, uri
        self.under_way += 1
        self.peak = max(self.peak, self.under_way)
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        self.under_way -= 1
        return StoredResult(content_type="application/json", body=b"[1]")


class _Reading:
    """A call that reads a result."""

    class principal:  # noqa: N801  # an attribute of calls
        """Its principal."""

        tenant = TenantId("ten_acme")

    result_owner = "anna"
    summary_threshold = 0

    def __init__(self) -> None:
        self.release_body: Callable[[], None] = lambda: None

    def hold_body(self, release: Callable[[], None]) -> None:
        """Keep the room of a body."""
        self.release_body = release


@pytest.mark.parametrize("is_page", [True, False])
async def test_few_results_are_in_memory_at_a_time(is_page: bool) -> None:
    """Ours: a neighbour that reads many large results waits for its own, and others have their turn (OAS-10)."""
    store, rooms = _SlowStore(), BodyRoom()
    reader = ResultReader(store, rooms, ResultProcesses())

    async def read() -> None:
        call: Any = _Reading()
        if is_page:
            await reader.read_page(call, "gateway+result://x", PartRequest())
        else:
            await reader.read_whole(call, "gateway+result://x")
        assert rooms.slot_pool.held(call.principal.tenant)
        call.release_body()  # the end of a call

    async with anyio.create_task_group() as tasks:
        for _ in range(30):
            tasks.start_soon(read)

    assert (store.peak, rooms.slot_pool.busy) == (rooms.slot_pool.share * ROOM_UNIT_BYTES // MAX_STORED_BYTES, 0)


class _TracedBody(bytes):
    """A body that records the threads that read it."""

    threads: set[int]

    def lstrip(self, removed: Any = None, /) -> bytes:
        """Strip the start, as the first step of a page."""
        self.threads.add(threading.get_ident())
        return super().lstrip(removed)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Decode, as the first step of a whole result."""
        self.threads.add(threading.get_ident())
        return super().decode(encoding, errors)


class _OneResult:
    """A store of one result."""

    def __init__(self, body: bytes) -> None:
        self.body = _TracedBody(body)
        self.body.threads = set()

    async def read(self, tenant: TenantId, owner: str, uri: str) -> StoredResult:
        """Return the result."""
        del tenant, owner, uri
        return StoredResult(content_type="text/plain", body=self.body)


@pytest.mark.parametrize(
    ("wanted", "is_inline"),
    [
        (PartRequest(), True),
        (PartRequest(where=(ElementCondition(equals=(1,)),)), False),
        (PartRequest(pointer="/0" * 17), False),
    ],
)
async def test_costly_reads_of_small_results_run_in_threads(wanted: PartRequest, is_inline: bool) -> None:
    """Ours: conditions and deep pointers on 2 kB may cost more than the event loop has time for (ISO-2)."""
    store = _OneResult(b"[" * 20 + b"1" * 2048 + b"]" * 20)
    await ResultReader(store, BodyRoom(), ResultProcesses()).read_page(
        cast("Any", _Reading()), "gateway+result://x", wanted
    )

    assert (store.body.threads == {threading.get_ident()}) is is_inline


async def test_a_whole_result_that_is_too_large_as_json_is_refused_early() -> None:
    """Ours: escapes are counted in a thread before they are written (ISO-2)."""
    reader, call = ResultReader(_OneResult(b"\x01" * 2_000_000), BodyRoom(), ResultProcesses()), cast("Any", _Reading())
    with pytest.raises(HandlerFailed, match="too large for one result; read parts of it"):
        await reader.read_whole(call, "gateway+result://x")

    store = _OneResult(b"a" * 2_000_000)
    content = await ResultReader(store, BodyRoom(), ResultProcesses()).read_whole(call, "gateway+result://x")
    assert content["text"] == "a" * 2_000_000
    assert threading.get_ident() not in store.body.threads


def test_the_size_of_a_text_as_json_is_exact() -> None:
    """Ours: the measured size is the size that the encoder writes."""
    text = "".join(map(chr, range(0x300))) + "😀"

    assert size_as_json(text.encode()) + 2 == len(msgspec.json.encode(text))
