"""Objects that the suites expect in a tenant, registered through the admin API as a tenant's own administrator
would.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

_SENT = Path(__file__).with_name("fixtures.yaml")
_ORDER = ("credentials", "tools", "resources", "resource-templates", "prompts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A tenant with the fixtures, and the key that clients use."""

    slug: str
    key: str


async def provision(admin: httpx.AsyncClient, slug: str, *, origin: str) -> Tenant:
    """Create the tenant and everything that the file names; `origin` is where the tools find the admin API."""
    await _post(admin, "/tenants", {"slug": slug})
    administrator = await _post(admin, f"/tenants/{slug}/keys", {"name": "fixtures", "scopes": ["admin"]})
    client = await _post(admin, f"/tenants/{slug}/keys", {"name": "suite", "scopes": ["mcp"]})
    own = {"authorization": f"Bearer {administrator['key']}"}
    for nouns, bodies in read_fixtures(slug, origin=origin, key=administrator["key"]).items():
        for body in bodies:
            await _post(admin, f"/tenants/{slug}/{nouns}", body, own)
    return Tenant(slug=slug, key=client["key"])


def read_fixtures(slug: str, *, origin: str, key: str) -> dict[str, list[dict[str, Any]]]:
    """The file with its places filled, in the order in which it has to be sent."""
    places = {"$ADMIN": f"{origin}/admin/v1/tenants/{slug}", "$ORIGIN": origin, "$KEY": key}
    text = json.dumps(yaml.safe_load(_SENT.read_text()))
    for place, value in places.items():
        text = text.replace(place, value)
    sent: dict[str, list[dict[str, Any]]] = json.loads(text)
    return {nouns: sent[nouns] for nouns in _ORDER}


async def _post(
    client: httpx.AsyncClient, path: str, body: dict[str, Any], headers: dict[str, str] | None = None
) -> dict[str, Any]:
    answer = await client.post(path, json=body, headers=headers)
    assert answer.status_code == 201, f"{path}: {answer.text}"
    stored: dict[str, Any] = answer.json()
    return stored
