"""Attacks on the private upstream of another tenant, by every spelling and through every door of the pool.

Tenant `acme` may reach a listener on loopback, tenant `globex` may not. Every name resolves inside the test.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import httpx
import pytest

from gateway.domain.http.plans import SchemeKind, SchemePlan
from gateway.domain.http.requests import Credential, UpstreamRequest
from gateway.domain.identifiers import TenantId
from gateway.errors import EgressDenied, FetchFailed, TokenRefused, UpstreamError
from gateway.upstream.auth.token_endpoint import client_credentials, fetch_token
from gateway.upstream.bulkhead import BulkheadLimits
from gateway.upstream.client import UpstreamClient
from gateway.upstream.document_fetch import fetch_document
from gateway.upstream.egress.allow_list import NOTHING, AllowList, read_stored
from tests.integration.upstream.loopback import OK, Exchange, Loopback, loopback, states
from tests.support.httpx_transport import guarded_client

ACME, GLOBEX = TenantId("ten_acme"), TenantId("ten_globex")
NAMES = {
    "billing.internal": ["127.0.0.1"],
    "alias.test": ["127.0.0.1"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "numeric.test": ["2130706433"],
    "nobody.internal": ["10.255.255.1"],
}
SPELLINGS = [
    "billing.internal",
    "BILLING.internal",
    "Billing.Internal",
    "billing.internal.",
    "billing.internal..",
    "bïlling.internal",
    "billing%2Einternal",
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "127.000.000.001",
    "0177.0.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::FFFF:7F00:0001]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "localhost",
    "alias.test",
    "mapped.test",
    "numeric.test",
    "x@billing.internal",
    "billing.internal@127.0.0.1",
    "alias.test#@billing.internal",
    "alias.test\\@billing.internal",
    " billing.internal",
]
"""Of the upstream that acme may reach by the name `billing.internal` and by the address 127.0.0.1."""


@dataclass(slots=True)
class Names:
    """The test's name system; numbers are read as the system would read them."""

    asked: list[str] = field(default_factory=list[str])

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a name."""
        self.asked.append(host)
        known = NAMES.get(host.lower().rstrip("."), ["127.0.0.1"] if "localhost" in host or host[0] == "0" else None)
        if known is None:
            raise OSError("unknown name")
        return known

    def close(self) -> None:
        """Nothing to close."""


@dataclass(slots=True)
class Lists:
    """The allow-lists of tenants, which a test changes."""

    lists: dict[TenantId, AllowList] = field(default_factory=dict[TenantId, AllowList])
    reads: int = 0

    def current(self, tenant: TenantId) -> AllowList | None:
        """Nothing is known without a question."""
        return None

    async def read(self, tenant: TenantId) -> AllowList:
        """The list as it is now."""
        self.reads += 1
        await asyncio.sleep(0)
        return self.lists.get(tenant, NOTHING)


@asynccontextmanager
async def private(lists: Lists, *entries: str) -> AsyncGenerator[tuple[Loopback, UpstreamClient]]:
    """An upstream on loopback that acme may reach by these names, and the pool before it."""
    async with (
        loopback(states(OK)) as server,
        UpstreamClient(lookup=Names(), rules=BulkheadLimits(failures=10_000, reserve=0)) as upstream,
    ):
        lists.lists[ACME] = read_stored(f"{entry}:{server.port}" for entry in entries)
        upstream.set_allow_lists(lists)
        yield server, upstream


def get(url: str, method: str = "GET") -> UpstreamRequest:
    """A request of this URL."""
    return UpstreamRequest(method=method, url=url, idempotent=True)


async def by_send(upstream: UpstreamClient, tenant: TenantId, url: str) -> None:
    """A declared request."""
    await upstream.send(get(url), tenant=tenant)


async def by_listen(upstream: UpstreamClient, tenant: TenantId, url: str) -> None:
    """A call of an imported operation."""
    await upstream.send_streaming(get(url), tenant=tenant)


async def by_ask(upstream: UpstreamClient, tenant: TenantId, url: str) -> None:
    """A look of a watch."""
    await upstream.send_full(get(url), tenant=tenant)


async def by_fetch(upstream: UpstreamClient, tenant: TenantId, url: str) -> None:
    """A document."""
    await fetch_document(upstream, url, limit=1 << 20, tenant=tenant)


async def by_token(upstream: UpstreamClient, tenant: TenantId, url: str) -> None:
    """A client's own token; the listener grants none."""
    scheme = SchemePlan(name="oauth", kind=SchemeKind.CLIENT_CREDENTIALS, token_url=url)
    await fetch_token(upstream, tenant, client_credentials(scheme, Credential(username="client", value="secret")))


async def by_httpx(upstream: UpstreamClient, tenant: TenantId, url: str) -> None:
    """A library that speaks httpx."""
    async with guarded_client(upstream, tenant=tenant) as client:
        await client.get(url)


Door: TypeAlias = Callable[[UpstreamClient, TenantId, str], Awaitable[None]]
OUTBOUND_PATHS: Mapping[str, Door] = {
    "send": by_send,
    "listen": by_listen,
    "ask": by_ask,
    "fetch": by_fetch,
    "token": by_token,
    "httpx": by_httpx,
}
infrastructure = pytest.mark.parametrize("door", OUTBOUND_PATHS.values(), ids=OUTBOUND_PATHS.keys())


async def refusal(door: Door, upstream: UpstreamClient, tenant: TenantId, url: str) -> tuple[object, ...]:
    """The refusal of a request that must not arrive."""
    with pytest.raises((FetchFailed, UpstreamError, httpx.InvalidURL)) as caught:
        await door(upstream, tenant, url)
    return type(caught.value), str(caught.value), getattr(caught.value, "code", None)


@infrastructure
async def test_no_spelling_reaches_the_upstream_of_another_tenant(door: Door) -> None:
    """Ours: an entry permits its own tenant, whatever another one writes, after its calls and beside them (ISO-5)."""
    async with private(Lists(), "billing.internal", "127.0.0.1") as (server, upstream):
        await by_send(upstream, ACME, f"http://billing.internal:{server.port}/")
        await by_send(upstream, ACME, f"http://127.0.0.1:{server.port}/")
        seen = server.connections, len(server.exchanges)
        for spelling in SPELLINGS:
            for scheme in ("http", "https"):
                await refusal(door, upstream, GLOBEX, f"{scheme}://{spelling}:{server.port}/x")

            assert (server.connections, len(server.exchanges)) == seen, spelling


@infrastructure
async def test_a_permitted_upstream_is_reached_by_its_own_tenant(door: Door) -> None:
    """Ours: the same doors lead there for acme; it is the permission that keeps globex out, not the test (ISO-5)."""
    async with private(Lists(), "billing.internal", "127.0.0.1") as (server, upstream):
        for host in ("billing.internal", "BILLING.internal", "127.0.0.1", "[::ffff:127.0.0.1]", "alias.test"):
            before = len(server.exchanges)
            with contextlib.suppress(TokenRefused):  # the listener grants none
                await door(upstream, ACME, f"http://{host}:{server.port}/x")
            assert len(server.exchanges) == before + 1, host


@pytest.mark.parametrize(
    "host",
    [
        "billing.internal.",
        "sub.billing.internal",
        "alias.test",
        "mapped.test",
        "localhost",
        "127.0.0.1",
        "[::ffff:127.0.0.1]",
        "0x7f000001",
    ],
)
async def test_the_permission_of_a_name_is_not_one_of_its_address(host: str) -> None:
    """Ours: acme itself reaches the upstream by the entry's own name and by nothing else (ISO-5)."""
    async with private(Lists(), "billing.internal") as (server, upstream):
        await by_send(upstream, ACME, f"http://billing.internal:{server.port}/")
        await refusal(by_send, upstream, ACME, f"http://{host}:{server.port}/")

        assert server.connections == 1


@pytest.mark.parametrize("tenant", [ACME, GLOBEX])
async def test_another_port_is_another_upstream(tenant: TenantId) -> None:
    """Ours: an entry permits one port (ISO-5)."""
    async with loopback(states(OK)) as other, private(Lists(), "billing.internal", "127.0.0.1") as (server, upstream):
        await by_send(upstream, ACME, f"http://127.0.0.1:{server.port}/")
        for host in ("billing.internal", "127.0.0.1"):
            await refusal(by_send, upstream, tenant, f"http://{host}:{other.port}/")

        assert other.connections == 0


@infrastructure
@pytest.mark.parametrize("host", ["billing.internal", "127.0.0.1", "alias.test", "localhost", "mapped.test"])
async def test_a_refusal_does_not_reveal_permissions_of_other_tenants(host: str, door: Door) -> None:
    """Ours: type, code and message are those of an upstream that no tenant may reach, before and after (ISO-5)."""
    lists = Lists()
    async with private(lists, "billing.internal", "127.0.0.1") as (server, upstream):
        await by_send(upstream, ACME, f"http://billing.internal:{server.port}/")
        permitted = await refusal(door, upstream, GLOBEX, f"http://{host}:{server.port}/x")
        nobodys = await refusal(door, upstream, GLOBEX, f"http://nobody.internal:{server.port}/x")
        lists.lists.clear()
        withdrawn = await refusal(door, upstream, GLOBEX, f"http://{host}:{server.port}/x")

    assert permitted == nobodys == withdrawn
    assert permitted[2] == "upstream.egress_denied"


async def test_a_redirect_leads_to_no_upstream_of_another_tenant() -> None:
    """Ours: each hop is judged for the tenant whose request it is (ISO-5)."""
    lists, target = Lists(), ""

    async def redirect(exchange: Exchange) -> bool:
        await exchange.write(f"HTTP/1.1 302 X\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode())
        return True

    async with loopback(redirect) as own, private(lists, "billing.internal") as (server, upstream):
        lists.lists[GLOBEX] = read_stored([own.authority])
        target = f"http://billing.internal:{server.port}/"
        async with guarded_client(upstream, tenant=GLOBEX, follow_redirects=True) as client:
            with pytest.raises(EgressDenied):
                await client.get(f"http://{own.authority}/")
        async with guarded_client(upstream, tenant=ACME, follow_redirects=True) as client:
            with pytest.raises(EgressDenied):
                await client.get(f"http://{own.authority}/")

        assert (len(own.exchanges), server.connections) == (1, 0)


async def test_a_request_without_a_tenant_has_the_list_for_all_only() -> None:
    """Ours: a request without a tenant has the permissions of none (ISO-5)."""
    async with private(Lists(), "127.0.0.1") as (server, upstream):
        with pytest.raises(EgressDenied):
            await upstream.send(get(f"http://127.0.0.1:{server.port}/"))

        assert server.connections == 0


async def test_a_withdrawn_permission_ends_kept_connections() -> None:
    """Ours: the next request is refused although a connection is idle; nothing is sent on it (ISO-5)."""
    lists = Lists()
    async with private(lists, "billing.internal", "127.0.0.1") as (server, upstream):
        urls = [f"http://{host}:{server.port}/" for host in ("billing.internal", "127.0.0.1")]
        for url in urls:
            await by_send(upstream, ACME, url)
            await by_send(upstream, ACME, url)
        assert (server.connections, len(server.exchanges)) == (2, 4)
        permitted = lists.lists.pop(ACME)
        for url in urls:
            await refusal(by_send, upstream, ACME, url)
        lists.lists[ACME] = read_stored([f"other.internal:{server.port}"])
        for url in urls:
            await refusal(by_send, upstream, ACME, url)

        assert (server.connections, len(server.exchanges)) == (2, 4)
        lists.lists[ACME] = permitted
        for url in urls:
            await by_send(upstream, ACME, url)
        assert len(server.exchanges) == 6


async def test_a_permission_is_read_for_each_attempt() -> None:
    """Ours: a request that is sent again is judged again (ISO-5)."""
    lists = Lists()

    async def withdraw(exchange: Exchange) -> bool:
        lists.lists.clear()
        return False  # the connection ends without an answer, which an idempotent request survives

    async with (
        loopback(withdraw) as server,
        UpstreamClient(lookup=Names(), rules=BulkheadLimits(failures=100)) as upstream,
    ):
        lists.lists[ACME] = read_stored([server.authority])
        upstream.set_allow_lists(lists)
        with pytest.raises(EgressDenied):
            await by_send(upstream, ACME, f"http://{server.authority}/")

        assert (server.connections, lists.reads) == (1, 2)


async def test_one_lookup_for_two_tenants_permits_one_of_them() -> None:
    """Ours: tenants that want a name at once share the question, never the permission (ISO-5)."""
    lists = Lists()
    async with (
        loopback(states(OK)) as server,
        UpstreamClient(rules=BulkheadLimits(failures=100)) as upstream,
    ):  # the system's resolver
        lists.lists[ACME] = read_stored([f"localhost:{server.port}"])
        upstream.set_allow_lists(lists)
        url = f"http://localhost:{server.port}/"
        outcomes = await asyncio.gather(
            *(upstream.send(get(url), tenant=tenant) for tenant in (GLOBEX, ACME) * 8), return_exceptions=True
        )

    assert [isinstance(outcome, EgressDenied) for outcome in outcomes] == [True, False] * 8
    assert len(server.exchanges) == 8
