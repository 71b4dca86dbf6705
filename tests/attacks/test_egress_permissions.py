"""Attacks on a private upstream that the operator permits another tenant, through the whole gateway.

`acme` may reach the recording upstream, `globex` may not. Each way out that a tenant can declare is tried by both: acme
arrives, which shows that the way leads there, and globex learns what it would of an upstream that no tenant may reach.
"""

import itertools
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import httpx
import pytest

from tests.support.documents import many
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.primitives import add, prompt, resource, template, text_resource, tool
from tests.support.replicas import until
from tests.support.servers import TestServers
from tests.support.upstream import RecordingUpstream, recording_upstream

UNPERMITTED = "http://10.255.255.1:8443"
"""A private upstream that no tenant may reach: it is refused before anything is dialled."""
DENIED = "upstream.egress_denied"
_LOOKED_S = 20
_IDS = re.compile(
    r"\b(?:src|ten|res|wat|wch|key|op|rtp|tpl|tool|prm)_[0-9a-z]{8,}\b|[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16,}"
)


@dataclass(frozen=True, slots=True)
class Two:
    """A gateway without a list for all, the upstream of acme, and a key of each tenant."""

    gateway: RunningGateway
    upstream: RecordingUpstream
    keys: Mapping[str, str]
    names: Iterator[int]
    sources: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    async def call(self, slug: str, name: str, arguments: Mapping[str, object]) -> httpx.Response:
        """A call of a tool."""
        params = {"name": name, "arguments": dict(arguments)}
        return await self.gateway.rpc(slug, self.keys[slug], "tools/call", params)

    async def own(self, slug: str, nouns: str, body: Mapping[str, Any]) -> None:
        """Store a primitive of the tenant."""
        await add(self.gateway, slug, nouns, body)

    async def source(self, slug: str, url: str) -> str:
        """The name of a source of the tenant whose operations lead to this URL."""
        found = self.sources.get((slug, url))
        if found is None:
            found = self.sources[slug, url] = self.fresh()
            more: dict[str, Any] = {"prefix": f"{found}_", "expose": "both", "credentials": {"oauth": ["c", "secret"]}}
            await self.gateway.import_document(slug, _places(url), name=found, **more)
        return found

    def fresh(self) -> str:
        """A name that no other attempt has."""
        return f"n{next(self.names)}"


async def permit(gateway: RunningGateway, slug: str, *entries: str) -> None:
    """Set the tenant's list."""
    answer = await gateway.admin.put(f"/tenants/{slug}/egress", json={"allow": list(entries)})
    assert answer.status_code == 200, answer.text


@asynccontextmanager
async def _running(servers: TestServers) -> AsyncGenerator[Two]:
    with servers.database() as database:
        async with (
            recording_upstream() as upstream,
            running_gateway(database.app_url, servers.own_redis(), log_level="error") as gateway,
        ):
            keys: dict[str, str] = {}
            for slug in ("acme", "globex"):
                await gateway.create_tenant(slug)
                keys[slug] = await gateway.create_key(slug)
            await permit(gateway, "acme", upstream.authority, f"localhost:{upstream.port}")
            yield Two(gateway, upstream, keys, itertools.count(1))


@pytest.fixture(scope="module")
async def shared(servers: TestServers) -> AsyncGenerator[Two]:
    """One gateway for all attempts that change no permission."""
    async with _running(servers) as started:
        yield started


@pytest.fixture
def two(shared: Two) -> Two:
    """The same, with an upstream that answers as ever."""
    shared.upstream.status, shared.upstream.body = 200, b'{"names":["a"]}'
    shared.upstream.content_type = "application/json"
    shared.upstream.seen.clear()
    return shared


def _places(url: str) -> dict[str, Any]:
    """An operation for each place where a document may name a server, and one for a token endpoint."""
    scheme, _, authority = url.partition("://")
    document = many(url, 5)
    by_path, by_operation, by_variable, by_token = (document["paths"][f"/n/{number}"] for number in range(1, 5))
    by_path["servers"] = by_operation["get"]["servers"] = [{"url": url}]
    variables = {"where": {"default": authority}}
    by_variable["get"]["servers"] = [{"url": f"{scheme}://{{where}}/v1", "variables": variables}]
    by_token["get"] |= {"servers": [{"url": UNPERMITTED}], "security": [{"oauth": []}]}
    flows: dict[str, Any] = {"clientCredentials": {"tokenUrl": f"{url}/token", "scopes": {}}}
    document["components"] = {"securitySchemes": {"oauth": {"type": "oauth2", "flows": flows}}}
    return document


def _imported(number: int) -> "Way":
    async def call(two: Two, slug: str, url: str) -> httpx.Response:
        return await two.call(slug, f"{await two.source(slug, url)}_op_{number:04}", {})

    return call


async def by_base_url(two: Two, slug: str, url: str) -> httpx.Response:
    """An imported operation at another base URL."""
    name = two.fresh()
    await two.gateway.import_document(slug, many(UNPERMITTED, 1), name=name, prefix=f"{name}_", base_url=url)
    return await two.call(slug, f"{name}_op_0000", {})


async def by_query_tool(two: Two, slug: str, url: str) -> httpx.Response:
    """`call_endpoint` of a source that is exposed through the query tools too."""
    arguments = {"source": await two.source(slug, url), "operation": "GET /n/0"}
    return await two.call(slug, "call_endpoint", arguments)


async def by_http(two: Two, slug: str, url: str) -> httpx.Response:
    """A declared request."""
    name = two.fresh()
    await two.own(slug, "tools", tool(name, {"kind": "http", "method": "GET", "url": f"{url}/x"}))
    return await two.call(slug, name, {})


async def by_steps(two: Two, slug: str, url: str) -> httpx.Response:
    """A request among steps."""
    name = two.fresh()
    steps = [{"http": {"method": "GET", "url": f"{url}/x"}, "as": "got"}, {"return": {"text": "done"}}]
    await two.own(slug, "tools", tool(name, {"kind": "steps", "steps": steps}))
    return await two.call(slug, name, {})


async def by_inner_call(two: Two, slug: str, url: str) -> httpx.Response:
    """A tool that steps call."""
    inner, outer = two.fresh(), two.fresh()
    await two.own(slug, "tools", tool(inner, {"kind": "http", "method": "GET", "url": f"{url}/x"}))
    steps = [{"call": {"tool": inner}, "as": "got"}, {"return": {"text": "{{ got.content[0].text }}"}}]
    await two.own(slug, "tools", tool(outer, {"kind": "steps", "steps": steps}))
    return await two.call(slug, outer, {})


async def by_resource(two: Two, slug: str, url: str) -> httpx.Response:
    """A resource that is fetched."""
    uri = f"docs://{two.fresh()}"
    await two.own(slug, "resources", resource(uri, {"kind": "http", "method": "GET", "url": f"{url}/x"}))
    return await two.gateway.rpc(slug, two.keys[slug], "resources/read", {"uri": uri}, mcp_name=uri)


async def by_template(two: Two, slug: str, url: str) -> httpx.Response:
    """A resource template that is fetched."""
    name = two.fresh()
    handler = {"kind": "http", "method": "GET", "url": f"{url}/{{{{ id }}}}"}
    await two.own(slug, "resource-templates", template(f"rows-{name}://{{id}}", handler))
    uri = f"rows-{name}://7"
    return await two.gateway.rpc(slug, two.keys[slug], "resources/read", {"uri": uri}, mcp_name=uri)


async def by_completion(two: Two, slug: str, url: str) -> httpx.Response:
    """A completion that is looked up."""
    name = two.fresh()
    lookup = {"url": f"{url}/names?q={{{{ value }}}}", "result": {"pointer": "/names"}}
    handler = {"kind": "template", "text": "{{ who }}", "completions": {"who": {"http": lookup}}}
    await two.own(slug, "prompts", prompt(name, handler, arguments=[{"name": "who"}]))
    params = {"ref": {"type": "ref/prompt", "name": name}, "argument": {"name": "who", "value": "a"}}
    return await two.gateway.rpc(slug, two.keys[slug], "completion/complete", params)


async def by_try(two: Two, slug: str, url: str) -> httpx.Response:
    """A call that an admin tries."""
    name = two.fresh()
    await two.own(slug, "tools", tool(name, {"kind": "http", "method": "GET", "url": f"{url}/x"}))
    return await two.gateway.admin.post(f"/tenants/{slug}/tools/{name}/try", json={"arguments": {}})


async def by_document(two: Two, slug: str, url: str) -> httpx.Response:
    """A document that is fetched."""
    two.upstream.body = json.dumps(many(UNPERMITTED, 1)).encode()
    name = two.fresh()
    body = {"name": name, "url": f"{url}/openapi.json", "prefix": f"{name}_"}
    return await two.gateway.admin.post(f"/tenants/{slug}/sources", json=body)


async def by_dry_run(two: Two, slug: str, url: str) -> httpx.Response:
    """A document that is fetched for a look."""
    two.upstream.body = json.dumps(many(UNPERMITTED, 1)).encode()
    name = two.fresh()
    body = {"name": name, "url": f"{url}/openapi.json", "prefix": f"{name}_", "dry_run": True}
    return await two.gateway.admin.post(f"/tenants/{slug}/sources", json=body)


async def by_refresh(two: Two, slug: str, url: str) -> httpx.Response:
    """A document that is fetched for a source that is there."""
    name = await two.source(slug, url)
    two.upstream.body = json.dumps(many(UNPERMITTED, 1)).encode()
    body = {"url": f"{url}/openapi.json", "prefix": f"{name}_", "dry_run": True}
    return await two.gateway.admin.put(f"/tenants/{slug}/sources/{name}", json=body)


async def by_watch(two: Two, slug: str, url: str) -> httpx.Response:
    """A URL that the gateway looks at."""
    uri = f"note://{two.fresh()}"
    await two.own(slug, "resources", text_resource(uri))
    watch = await add(two.gateway, slug, "watches", {"uri": uri, "url": f"{url}/x", "interval_s": 86_400})
    place = f"/tenants/{slug}/watches/{watch['id']}"

    async def has_looked() -> bool:
        return (await two.gateway.admin.get(place)).json()["status"]["checked_at"] is not None

    await until(has_looked, seconds=_LOOKED_S)
    shown = await two.gateway.admin.get(place)
    kept = {name: shown.json()["status"][name] for name in ("fault", "failures")}
    return httpx.Response(200, json=kept)


async def by_issuer(two: Two, slug: str, url: str) -> httpx.Response:
    """The metadata of an issuer; `outbound/test_identity_endpoints.py` has the endpoints that metadata names."""
    body: dict[str, Any] = {"name": "corp", "url": url, "rules": [{}]}
    return await two.gateway.admin.post(f"/tenants/{slug}/issuers", json=body)


async def by_issuer_keys(two: Two, slug: str, url: str) -> httpx.Response:
    """The signing keys of an issuer."""
    body: dict[str, Any] = {"name": "corp", "url": "https://login.example", "jwks_url": f"{url}/keys", "rules": [{}]}
    return await two.gateway.admin.post(f"/tenants/{slug}/issuers", json=body)


Way: TypeAlias = Callable[[Two, str, str], Awaitable[httpx.Response]]
WAYS: Mapping[str, Way] = {
    "server": _imported(0),
    "server-of-path": _imported(1),
    "server-of-operation": _imported(2),
    "server-variable": _imported(3),
    "token": _imported(4),
    **{
        way.__name__.removeprefix("by_"): way
        for way in (
            by_base_url,
            by_query_tool,
            by_http,
            by_steps,
            by_inner_call,
            by_resource,
            by_template,
            by_completion,
            by_try,
            by_document,
            by_dry_run,
            by_refresh,
            by_watch,
            by_issuer,
            by_issuer_keys,
        )
    },
}


def _plain(answer: httpx.Response, *hidden: str) -> tuple[int, str]:
    """Contents of an answer, without ids and without the names and URLs that the caller chose."""
    text = _IDS.sub("ID", answer.text)
    for each in hidden:
        text = text.replace(each, "URL")
    return answer.status_code, re.sub(r"\bn[0-9]+\b", "NAME", re.sub(r"\bn[0-9]+_", "NAME_", text))


@pytest.mark.parametrize(("name", "host"), [*zip(WAYS, itertools.cycle(("127.0.0.1", "localhost")))])
async def test_no_path_leads_to_the_upstream_of_another_tenant(two: Two, name: str, host: str) -> None:
    """Ours: each way leads there for acme; globex is refused as for an upstream that no tenant may reach (ISO-5)."""
    way, url = WAYS[name], f"http://{host}:{two.upstream.port}"
    await way(two, "acme", url)
    assert two.upstream.seen, "the way leads nowhere"
    seen = len(two.upstream.seen)

    refused = _plain(await way(two, "globex", url), url)
    assert len(two.upstream.seen) == seen
    assert refused == _plain(await way(two, "globex", UNPERMITTED), UNPERMITTED)
    assert (
        DENIED in refused[1]
        or "not permitted to connect" in refused[1]
        or "host that the operator permits" in refused[1]
    )


@pytest.mark.parametrize(
    "spelling", ["127.1", "127.0.0.1.", "[::ffff:127.0.0.1]", "LOCALHOST", "localhost.localdomain.", "0x7f000001"]
)
async def test_other_spellings_lead_nowhere_either(two: Two, spelling: str) -> None:
    """Ours: beside idle connections of acme, whatever globex declares is refused (ISO-5)."""
    await by_http(two, "acme", two.upstream.url)
    seen = len(two.upstream.seen)
    name = two.fresh()
    url = f"http://{spelling}:{two.upstream.port}/x"
    body = tool(name, {"kind": "http", "method": "GET", "url": url})
    stored = await two.gateway.admin.post("/tenants/globex/tools", json=body)
    if stored.status_code == 201:
        assert (await two.call("globex", name, {})).json()["result"]["isError"]
    else:
        assert stored.status_code == 422

    assert len(two.upstream.seen) == seen


async def test_a_permission_opens_and_its_withdrawal_closes(servers: TestServers) -> None:
    """Ours: from the next request on; a connection that is idle then serves no more (ISO-5)."""
    async with _running(servers) as two:
        await two.own("acme", "tools", tool("fetch", {"kind": "http", "method": "GET", "url": two.upstream.url}))
        for _ in range(2):
            assert not (await two.call("acme", "fetch", {})).json()["result"]["isError"]
        await permit(two.gateway, "acme", "billing.internal:8443")
        for _ in range(2):
            assert DENIED in (await two.call("acme", "fetch", {})).text
        await permit(two.gateway, "acme")
        assert DENIED in (await two.call("acme", "fetch", {})).text
        assert len(two.upstream.seen) == 2
        await permit(two.gateway, "acme", two.upstream.authority)
        assert not (await two.call("acme", "fetch", {})).json()["result"]["isError"]


async def test_a_tenant_cannot_change_its_egress_list(two: Two) -> None:
    """Ours: its admin reads the list and cannot change it, nor through its policy or its sources (ISO-5)."""
    admin = {"authorization": f"Bearer {await two.gateway.create_key('globex', 'admin')}"}
    place = "/admin/v1/tenants/globex/egress"
    shown = await two.gateway.http.get(place, headers=admin)
    refused = await two.gateway.http.put(place, headers=admin, json={"allow": [two.upstream.authority]})
    origins = {"http_origins": [two.upstream.url]}
    await two.gateway.http.patch("/admin/v1/tenants/globex/policy", headers=admin, json=origins)
    denied = await by_http(two, "globex", two.upstream.url)
    await two.gateway.http.patch("/admin/v1/tenants/globex/policy", headers=admin, json={"http_origins": None})

    assert (shown.status_code, shown.json()) == (200, {"allow": []})
    assert (refused.status_code, refused.json()["code"]) == (403, "auth.forbidden")
    assert DENIED in denied.text
    foreign = await two.gateway.http.get("/admin/v1/tenants/acme/egress", headers=admin)
    missing = await two.gateway.http.get("/admin/v1/tenants/none/egress", headers=admin)
    assert (foreign.status_code, foreign.json()["detail"]) == (missing.status_code, missing.json()["detail"])


async def test_a_tenant_of_the_same_name_inherits_nothing(servers: TestServers) -> None:
    """Ours: a list ends with its tenant (ISO-5)."""
    async with _running(servers) as two:
        await by_http(two, "acme", two.upstream.url)
        (await two.gateway.admin.delete("/tenants/acme")).raise_for_status()
        await two.gateway.create_tenant("acme")
        again = Two(two.gateway, two.upstream, {"acme": await two.gateway.create_key("acme")}, two.names)
        assert (await two.gateway.admin.get("/tenants/acme/egress")).json() == {"allow": []}
        assert DENIED in (await by_http(again, "acme", two.upstream.url)).text

    assert len(two.upstream.seen) == 1
