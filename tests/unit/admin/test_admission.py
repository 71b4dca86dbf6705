"""The limits of the admin API: the counted events of each limit, and its exceptions."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import anyio
import pytest

from gateway.admin.admission import AdminLimits, WorkKind
from gateway.admin.dispatch import work_of
from gateway.admin.endpoint import NO_TENANT
from gateway.admin.routes.index import ENDPOINTS
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.principals import Caller, Operator, Principal
from gateway.errors import LimitExceeded

HERE, THERE = "192.0.2.1", "198.51.100.1"


def _principal(tenant: str, key: str) -> Principal:
    return Principal(tenant=TenantId(tenant), slug=tenant, key=KeyId(key), subject=key, scopes=frozenset({Scope.ADMIN}))


def _admitted(limits: AdminLimits, caller: Caller, *, tries: int, address: str = HERE, size: int = 0) -> int:
    """Number of requests that are admitted."""

    def tried() -> Iterator[bool]:
        for _ in range(tries):
            try:
                limits.admit(caller, address, size=size)
            except LimitExceeded:
                yield False
            else:
                yield True

    return sum(tried())


@pytest.mark.parametrize(("size", "admitted"), [(0, 200), (4095, 200), (4096, 100), (100_000, 8), (32 * 1024**2, 2)])
def test_a_key_has_a_burst_and_a_body_counts_by_its_size(size: int, admitted: int) -> None:
    """Ours: 200 small requests pass at once, few large ones, and never none (ISO-6)."""
    limits = AdminLimits(50, clock=lambda: 1.0)

    assert _admitted(limits, _principal("a", "k"), tries=250, size=size) == admitted


def test_an_application_counts_by_its_objects() -> None:
    """Ours: a thousand small objects in one request cost as much as the largest request (ISO-6)."""
    limits = AdminLimits(50, clock=lambda: 1.0)
    [route] = [each for each in ENDPOINTS if each.name == "apply_manifests"]
    for number in range(10):
        try:
            limits.admit(_principal("a", "k"), HERE, size=1_000 * 55, bytes_per_token=route.bytes_per_token)
        except LimitExceeded:
            assert number == 2
            return
    raise AssertionError("ten applications at once were admitted")


def test_the_keys_of_a_tenant_have_a_limit_together() -> None:
    """Ours: minting keys does not multiply a tenant's requests (ISO-6)."""
    limits = AdminLimits(50, clock=lambda: 1.0)
    passed = sum(_admitted(limits, _principal("a", f"k{number}"), tries=150) for number in range(10))

    assert passed == 400
    assert _admitted(limits, _principal("b", "k"), tries=150) == 150


def test_the_tenants_of_an_address_have_a_limit_together() -> None:
    """Ours: many tenants from one address are bounded, and those elsewhere are not touched (ISO-6)."""
    limits = AdminLimits(50, clock=lambda: 1.0)
    passed = sum(_admitted(limits, _principal(f"t{number}", f"k{number}"), tries=150) for number in range(20))

    assert passed == 2000
    assert _admitted(limits, _principal("b", "k"), tries=150, address=THERE) == 150


def test_requests_without_a_credential_are_counted_by_address() -> None:
    """Ours: the public document has a limit too, which takes nothing from requests with a key (ISO-6)."""
    limits = AdminLimits(50, clock=lambda: 1.0)
    for _ in range(2000):
        limits.admit_anonymous(HERE)
    with pytest.raises(LimitExceeded):
        limits.admit_anonymous(HERE)

    limits.admit_anonymous(THERE)
    assert _admitted(limits, _principal("a", "k"), tries=10) == 10


def test_no_flood_from_its_address_takes_anything_from_the_operator() -> None:
    """Ours: the operator is bounded by the own key alone, also behind a proxy that hides addresses (ISO-6)."""
    limits = AdminLimits(50, clock=lambda: 1.0)
    with ExitStack() as stack:
        for number in range(40):
            _admitted(limits, _principal(f"t{number}", f"k{number}"), tries=150)
            for _ in range(6):
                stack.enter_context(limits.opened(_principal(f"t{number}", f"k{number}"), HERE))

        assert _admitted(limits, Operator(), tries=150) == 150
        with limits.opened(Operator(), HERE):
            pass


def test_a_refusal_names_the_limit_and_when_to_retry() -> None:
    """Ours: 429 with Retry-After, and a text that names the limit."""
    limits = AdminLimits(50, clock=lambda: 1.0)
    _admitted(limits, Operator(), tries=201)
    with pytest.raises(LimitExceeded, match=r"of this key \(limit 50 per second for each replica") as caught:
        for _ in range(50):
            limits.admit(Operator(), HERE, size=100_000)
    assert caught.value.retry_after_s


def _one_key(_: int) -> tuple[str, str]:
    return "t", "k"


def _one_tenant(number: int) -> tuple[str, str]:
    return "t", f"k{number}"


def _one_address(number: int) -> tuple[str, str]:
    return f"t{number}", f"k{number}"


@pytest.mark.parametrize(("limit", "named"), [(64, _one_key), (96, _one_tenant), (256, _one_address)])
def test_open_requests_are_bounded_by_key_tenant_and_address(
    limit: int, named: Callable[[int], tuple[str, str]]
) -> None:
    """Ours: requests that do not end hold a bounded number of places (ISO-6)."""
    limits = AdminLimits()
    with ExitStack() as stack:
        for number in range(limit):
            stack.enter_context(limits.opened(_principal(*named(number)), HERE))
        with pytest.raises(LimitExceeded, match=rf"admin requests .*limit {limit} per replica"):
            stack.enter_context(limits.opened(_principal(*named(limit)), HERE))
    with limits.opened(_principal(*named(0)), HERE):
        pass


async def test_one_tenant_holds_a_quarter_of_the_places_for_costly_work() -> None:
    """Ours: checks of one tenant leave places to others, and light work needs none (ISO-3, ISO-6)."""
    limits, entered = AdminLimits(), list[str]()

    async def work(tenant: str) -> None:
        async with limits.working(WorkKind.CHECK, _principal(tenant, "k")):
            entered.append(tenant)
            await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        for _ in range(30):
            group.start_soon(work, "evil")
        await anyio.wait_all_tasks_blocked()
        for tenant in ("a", "b", "c"):
            group.start_soon(work, tenant)
        await anyio.wait_all_tasks_blocked()
        async with limits.working(WorkKind.LIGHT, _principal("evil", "k")):
            pass
        group.cancel_scope.cancel()

    assert entered == ["evil"] * 4 + ["a", "b", "c"]


def test_costly_routes_are_marked() -> None:
    """Ours: every route that validates, compiles, calls or examines takes a place."""
    marked = {route.name: route.work for route in ENDPOINTS if route.work is not WorkKind.LIGHT}

    assert {name for name, work in marked.items() if work is WorkKind.OUTBOUND} == {
        "create_issuer",
        "replace_issuer",
        "update_issuer",
        "refresh_keys",
        "create_installation_issuer",
        "replace_installation_issuer",
        "update_installation_issuer",
        "refresh_installation_issuer_keys",
        "create_source",
        "replace_source",
        "replace_document",
        "update_source",
        "refresh_source",
        "propose_source",
        "activate_source_version",
        "try_tool",
        "try_resource",
        "try_prompt",
        "reattach_live_source",
        "test_credential",
        "apply_manifests",
    }
    assert {"examine_installation", "verify_audit", "validate_tool", "create_prompt"} <= marked.keys()
    assert NO_TENANT == ""


@pytest.mark.parametrize("given", ["search", "sort", "state", "origin", "uri"])
def test_a_list_that_may_be_read_to_its_end_is_costly(given: str) -> None:
    """Ours: a search that finds nothing reads a whole list; a part of a list stays cheap (ADM-1, ISO-3)."""
    lists = [route for route in ENDPOINTS if route.method == "GET" and "search" in route.query.model_fields]
    assert len(lists) == 29
    for route in lists:
        assert work_of(route, [("limit", "2"), ("cursor", "x")]) is WorkKind.LIGHT
        assert work_of(route, [("limit", "2"), (given, "x")]) is WorkKind.SCAN


async def test_one_tenant_searches_in_a_quarter_of_the_places() -> None:
    """Ours: while a tenant's searches wait for each other, another's has a place at once (ADM-1, ISO-3)."""
    limits = AdminLimits()
    running = 0

    async def search() -> None:
        nonlocal running
        async with limits.working(WorkKind.SCAN, _principal("evil", "k")):
            running += 1
            await anyio.sleep_forever()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            for _ in range(16):
                group.start_soon(search)
            await anyio.wait_all_tasks_blocked()
            assert running == 4
            async with limits.working(WorkKind.SCAN, _principal("good", "k")):
                group.cancel_scope.cancel()
