"""Every route of the admin API, asked by those who may not: nobody, other tenants, keys without the scope."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from gateway.admin.routes import ENDPOINTS
from gateway.domain.keys import mint_key
from tests.support.documents import pets
from tests.support.gateway import RunningGateway, running_gateway

URL = "https://pets.example"
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/tenants"): {"slug": "third"},
    ("PATCH", "/tenants/{t}"): {"name": "Taken over"},
    ("POST", "/tenants/{t}/keys"): {"name": "k", "scopes": ["admin"]},
    ("PATCH", "/tenants/{t}/keys/{id}"): {"name": "k"},
    ("POST", "/tenants/{t}/sources"): {"name": "new", "document": pets(URL), "prefix": "new"},
    ("PUT", "/tenants/{t}/sources/{name}"): {"document": pets(URL)},
    ("PATCH", "/tenants/{t}/sources/{name}"): {"base_url": "https://evil.example"},
    ("PUT", "/tenants/{t}/policy"): {"moderate": "deny"},
}
"""A valid body for every route that has one."""
ROUTES = [(route.method, route.path) for route in ENDPOINTS]
ABOUT_ONE = [(method, path) for method, path in ROUTES if path.count("{") == 2]
OF_TENANT = [(method, path) for method, path in ROUTES if "{t}" in path]


@dataclass(frozen=True, slots=True)
class Two:
    """Two tenants with a key, a source and tools each, and who asks for the first."""

    gateway: RunningGateway
    ids: dict[str, str]
    """The key of each tenant that is asked about, by slug."""
    tenants: dict[str, str]
    """The id of each tenant, by slug."""
    keys: dict[str, str]
    """Keys of the first tenant by their scope."""

    async def ask(self, route: tuple[str, str], slug: str, target: str, key: str | None) -> httpx.Response:
        """One request of this route, about this tenant and its object of this owner."""
        method, path = route
        names = {"missing": "none"}
        name = names.get(target, "pets" if target == "a" else "zoo")
        tool = "/tools/" in path
        asked = path.format(
            t=slug,
            id=self.ids.get(target, "key_00000000000000000000"),
            name=f"{name}_list_pets" if tool else name,
        )
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        return await self.gateway.http.request(method, f"/admin/v1{asked}", json=BODIES.get(route), headers=headers)

    async def trail(self, slug: str) -> list[dict[str, Any]]:
        """What was changed in a tenant."""
        items: list[dict[str, Any]] = (await self.gateway.admin.get(f"/tenants/{slug}/audit")).json()["items"]
        return items


@pytest.fixture
async def two(database_url: str, redis_url: str) -> AsyncGenerator[Two]:
    """A gateway with the tenants `a` and `b`; their sources and tools have different names."""
    async with running_gateway(database_url, redis_url) as gateway:
        ids: dict[str, str] = {}
        tenants: dict[str, str] = {}
        for slug, source in (("a", "pets"), ("b", "zoo")):
            await gateway.create_tenant(slug)
            tenants[slug] = (await gateway.admin.get(f"/tenants/{slug}")).json()["id"]
            made = await gateway.admin.post(f"/tenants/{slug}/keys", json={"name": "k", "scopes": ["mcp"]})
            ids[slug] = made.json()["id"]
            await gateway.import_document(slug, pets(URL), name=source, prefix=source)
        keys = {
            scope: await gateway.create_key("a", scope) for scope in ("mcp", "admin", "approve", "audit", "provide")
        }
        yield Two(gateway, ids, tenants, keys)


def _shape(answer: httpx.Response) -> object:
    """What an answer tells: status, headers but for times and ids, and the problem without its own id."""
    body = {name: value for name, value in answer.json().items() if name != "correlation_id"}
    return answer.status_code, answer.headers.get("content-type"), answer.headers.get("allow"), body


async def test_a_foreign_tenant_answers_like_a_missing_one(two: Two) -> None:
    """Ours: with an admin key of one tenant, every route of another is what a missing one is: 404 (TEN-1, TEN-5)."""
    before = await two.trail("b")
    for route in OF_TENANT:
        missing = await two.ask(route, "none", "missing", two.keys["admin"])
        assert missing.status_code == 404
        for slug in ("b", two.tenants["b"]):
            for target in ("a", "b", "missing"):
                assert _shape(await two.ask(route, slug, target, two.keys["admin"])) == _shape(missing), route
    assert await two.trail("b") == before


@pytest.mark.parametrize("route", ABOUT_ONE, ids=" ".join)
async def test_a_foreign_object_answers_like_a_missing_one(two: Two, route: tuple[str, str]) -> None:
    """Ours: an object of another tenant, named under the own one, is what a missing one is: 404 (TEN-1, TEN-5)."""
    before = await two.trail("b")
    missing = await two.ask(route, "a", "missing", two.keys["admin"])
    foreign = await two.ask(route, "a", "b", two.keys["admin"])
    assert missing.status_code == 404
    assert _shape(foreign) == _shape(missing)
    assert await two.trail("b") == before
    assert (await two.ask(route, "a", "a", two.keys["admin"])).is_success


async def test_without_a_good_credential_every_route_is_401(two: Two) -> None:
    """Ours: no, broken or unknown credentials are 401, the same for existing and missing tenants (TEN-2)."""
    real = two.keys["admin"]
    wrong = real[:-1] + ("0" if real[-1] != "0" else "1")
    for route in ROUTES:
        for key in (None, "x", wrong, mint_key().text):
            answers = [await two.ask(route, slug, "a", key) for slug in ("a", "b", "none")]
            assert {answer.status_code for answer in answers} == {401}, route
            assert {answer.headers["www-authenticate"] for answer in answers} == {"Bearer"}
            assert len({str(_shape(answer)) for answer in answers}) == 1


async def test_a_key_without_the_scope_may_nothing(two: Two) -> None:
    """Ours: admin is needed for everything, the audit scope reads the trail and no more (TEN-2)."""
    before = await two.trail("a")
    for route in OF_TENANT:
        for scope in ("mcp", "approve", "audit", "provide"):
            answer = await two.ask(route, "a", "a", two.keys[scope])
            may = scope == "audit" and route[1].endswith("/audit")
            assert answer.status_code == (200 if may else 403), (route, scope)
    assert await two.trail("a") == before


@pytest.mark.parametrize(
    "route",
    [("GET", "/tenants"), ("POST", "/tenants"), ("PATCH", "/tenants/{t}"), ("DELETE", "/tenants/{t}")],
    ids=" ".join,
)
async def test_tenants_are_the_operators(two: Two, route: tuple[str, str]) -> None:
    """Ours: no key of a tenant lists, makes, renames or removes tenants, its own included (TEN-1)."""
    assert (await two.ask(route, "a", "a", two.keys["admin"])).status_code == 403
    assert [item["slug"] for item in (await two.gateway.admin.get("/tenants")).json()["items"]] == ["a", "b"]


async def test_a_tenant_admin_may_everything_of_its_own(two: Two) -> None:
    """Ours: an admin key reads and changes its own tenant, by slug and by id (TEN-1)."""
    admin = two.keys["admin"]
    for slug in ("a", two.tenants["a"]):
        for route in OF_TENANT:
            if route[0] == "GET":
                assert (await two.ask(route, slug, "a", admin)).status_code == 200, route


async def test_lists_of_one_tenant_hold_nothing_of_another(two: Two) -> None:
    """Ours: no list of one tenant names a key, source, tool or entry of the other (TEN-1)."""
    for noun in ("keys", "sources", "tools", "audit"):
        answer = await two.ask(("GET", f"/tenants/{{t}}/{noun}"), "a", "a", two.keys["admin"])
        assert two.ids["b"] not in answer.text
        assert "zoo" not in answer.text
        assert two.tenants["b"] not in answer.text


async def test_a_cursor_of_one_tenant_opens_no_list_of_another(two: Two) -> None:
    """Ours: cursors are bound to their tenant (TEN-5)."""
    cursor = (await two.gateway.admin.get("/tenants/b/tools?limit=1")).json()["next_cursor"]
    headers = {"authorization": f"Bearer {two.keys['admin']}"}
    answer = await two.gateway.http.get("/admin/v1/tenants/a/tools", params={"cursor": cursor}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "input.cursor_invalid")
