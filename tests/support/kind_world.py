"""A tenant with generated objects of every kind, another tenant, and a key of each scope: tests of engines share it."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from gateway.domain.tenancy.keys import Scope
from gateway.kinds.identity import MANAGED_ISSUER
from gateway.kinds.index import OPERATORS_KINDS
from gateway.kinds.kind import Kind
from gateway.kinds.manifests import Declared
from gateway.kinds.singleton import Singleton
from gateway.kinds.sources import OVERRIDE
from tests.support.gateway import OPERATOR_KEY, RunningGateway
from tests.support.generated_objects import Generated, generate_tenant, operation_of, with_number
from tests.support.kinds import with_key
from tests.support.manifests import Manifest
from tests.support.servers import TestServers
from tests.support.stand import running_stand

SLUG, OTHER = "acme", "globex"
OPERATOR, ANONYMOUS, FOREIGN = "operator", "nobody", "admin of another tenant"
_SCOPES = {Scope.ADMIN: (Scope.ADMIN, Scope.MCP)}
"""Further scopes of the key of an admin, so that it may admit people, and grant the scope to a key."""
SUPPORT, AUDITOR, FINANCE, CREATOR = "support", "auditor", "finance", "creator"
OF_TENANT, OF_OTHER, OF_PROFILES = "administrator", "administrator of another", "administrator of profiles"
OPERATORS: Mapping[str, Mapping[str, object]] = {
    SUPPORT: {"role": "support"},
    AUDITOR: {"role": "auditor"},
    FINANCE: {"role": "finance"},
    CREATOR: {"role": "creator"},
    OF_TENANT: {"role": "administrator", "tenants": [SLUG]},
    OF_OTHER: {"role": "administrator", "tenants": [OTHER]},
    OF_PROFILES: {"role": "administrator", "kinds": ["profile"]},
}
"""The operators with limited rights, by the member of the creation of their keys."""
PRINCIPALS = (OPERATOR, *Scope, FOREIGN, ANONYMOUS, *OPERATORS)


@dataclass(frozen=True, slots=True)
class World:
    """A tenant with objects of every kind, another tenant, and a key of each scope."""

    gateway: RunningGateway
    generated: Mapping[str, Generated]
    keys: Mapping[str, str | None]

    async def ask(self, principal: str, method: str, path: str, body: object = None, **more: Any) -> httpx.Response:
        """One request by a principal."""
        key = self.keys[principal]
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        return await self.gateway.http.request(method, f"/admin/v1{path}", json=body, headers=headers, **more)

    async def apply(self, principal: str, objects: Sequence[Manifest], **more: Any) -> httpx.Response:
        """An application to the first tenant by a principal."""
        return await self.ask(principal, "POST", f"/tenants/{SLUG}/apply", {"objects": list(objects), **more})

    async def trail(self) -> object:
        """The newest change of the tenant."""
        found = await self.gateway.admin.get(f"/tenants/{SLUG}/audit", params={"kind": "change", "limit": 1})
        return found.json()["items"]

    def manifests(self, kind: Declared) -> Sequence[Manifest]:
        """The generated objects of a kind."""
        return self.generated[kind.name].objects


@pytest.fixture(scope="package")
async def world(servers: TestServers) -> AsyncGenerator[World]:
    """No test changes a generated object for good."""
    async with running_stand(servers, public_url="https://gateway.example") as stand:
        gateway = stand.gateway
        generated = await generate_tenant(gateway, stand.upstreams[0], SLUG)
        await gateway.create_tenant(OTHER)
        for kind in OPERATORS_KINDS:
            if not kind.is_tenants:
                (await gateway.admin.post(f"/{kind.plural}", json=dict(kind.example))).raise_for_status()
        scopes = {scope: _SCOPES.get(scope, (scope,)) for scope in Scope}
        keys: dict[str, str | None] = {name: await gateway.create_key(SLUG, *each) for name, each in scopes.items()}
        keys |= {OPERATOR: OPERATOR_KEY, ANONYMOUS: None, FOREIGN: await gateway.create_key(OTHER, "admin")}
        for name, rights in OPERATORS.items():
            body = {"name": name.replace(" ", "-"), **rights}
            made = (await gateway.admin.post("/operator-keys", json=body)).raise_for_status()
            keys[name] = made.json()["secret"]
        yield World(gateway, generated, keys)


def operators_object(kind: Kind[Any]) -> Manifest:
    """An object of a kind of the operator: the first tenant, or the example of the kind."""
    if kind.is_tenants:
        return {"name": SLUG, "members": {"name": "Taken over"}}
    return {"name": kind.key_sent(kind.example), "members": dict(kind.whole_example)}


def list_path(kind: Declared) -> str:
    if isinstance(kind, Singleton):
        return f"/tenants/{SLUG}/{kind.path}"
    return f"/{kind.plural}" if kind.is_operators else f"/tenants/{SLUG}/{kind.plural}"


async def item_path(world: World, kind: Declared, one: Manifest) -> str:
    """The path of a stored object."""
    if isinstance(kind, Singleton):
        return list_path(kind)
    if kind.is_tenants:
        return f"/tenants/{SLUG}"
    if kind.address == "name":
        return f"{list_path(kind)}/{quote(one['name'], safe='')}"
    name = "name" if kind.keyed == "id" else kind.keyed
    items = (await world.gateway.admin.get(list_path(kind), params={"limit": 200})).json()["items"]
    return f"{list_path(kind)}/{next(each['id'] for each in items if each[name] == one['name'])}"


def body_of(kind: Declared, one: Manifest) -> dict[str, Any]:
    """The body of the REST request that creates an object of a manifest."""
    if isinstance(kind, Singleton) or kind.key_in:
        return dict(one["members"])
    return {"name" if kind.keyed == "id" else kind.keyed: one["name"], **one["members"]}


def renumbered(kind: Kind[Any], one: Manifest, number: int) -> Manifest:
    """The same object under another key."""
    key = with_number(one["name"], number)
    members = with_key(kind, one["members"], key) if kind.key_in else one["members"]
    if kind is OVERRIDE:
        members = {**members, "operation": operation_of(number)}
    if kind is MANAGED_ISSUER:
        members = {**members, "url": f"{members['url']}/{number}"}
    return {**one, "name": key, "members": dict(members)}
