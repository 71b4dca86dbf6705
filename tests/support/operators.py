"""Operators by name for tests: keys with roles, and requests with them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.support.gateway import RunningGateway

ROLES: Mapping[str, Mapping[str, Any]] = {
    "administrator": {"role": "administrator", "tenants": ["acme"]},
    "of-profiles": {"role": "administrator", "kinds": ["profile"]},
    "creator": {"role": "creator"},
    "support": {"role": "support"},
    "support-of-acme": {"role": "support", "tenants": ["acme"]},
    "auditor": {"role": "auditor"},
    "auditor-of-acme": {"role": "auditor", "tenants": ["acme"]},
    "finance": {"role": "finance"},
}
"""The rights of the operators of the matrix, by name."""


@dataclass(slots=True)
class Operators:
    """A gateway, and the operator keys that tests have made."""

    gateway: RunningGateway
    keys: dict[str, str] = field(default_factory=dict[str, str])

    async def make(self, name: str, role: str, **more: object) -> str:
        """Create an operator key, and return its text."""
        made = await self.gateway.admin.post("/operator-keys", json={"name": name, "role": role, **more})
        assert made.status_code == 201, made.text
        self.keys[name] = made.json()["secret"]
        return self.keys[name]

    async def ask(self, name: str, method: str, path: str, body: object = None, **more: Any) -> httpx.Response:
        """One request with the key of this name."""
        headers = {"authorization": f"Bearer {self.keys[name]}", **more.pop("headers", {})}
        return await self.gateway.http.request(method, f"/admin/v1{path}", json=body, headers=headers, **more)
