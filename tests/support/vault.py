"""A small server that speaks the HTTP API of Vault: sign-in by AppRole, and version 2 of the key-value engine.

Its answers have the members and statuses of the API's documentation; a test changes what it does by its attributes.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

ROOT_TOKEN = "hvs.test-root-token"
ROLE_ID, SECRET_ID = "role-of-the-gateway", "secret-id-of-the-gateway"


@dataclass(slots=True)
class VaultServer:
    """Secrets by mount and path, each with its fields; the newest version counts."""

    url: str = ""
    stored: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    tokens: set[str] = field(default_factory=lambda: {ROOT_TOKEN})
    seen: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    status: int | None = None
    headers: str = ""
    body: bytes | None = None
    gate: asyncio.Event | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, and close the connection."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            method, target, _ = head[0].split(" ")
            named = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
            content = await reader.readexactly(int(named.get("content-length", "0")))
            self.seen.append((method, target))
            if self.gate is not None:
                await self.gate.wait()
            status, answer = self._answer(method, target, named.get("x-vault-token", ""), content)
            if self.status is not None:
                status = self.status
            body = json.dumps(answer).encode() if self.body is None else self.body
            length = f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\nConnection: close\r\n"
            writer.write(f"HTTP/1.1 {status} X\r\n{length}{self.headers}\r\n".encode() + body)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, method: str, target: str, token: str, content: bytes) -> tuple[int, dict[str, Any]]:
        if (method, target) == ("POST", "/v1/auth/approle/login"):
            return self._login(json.loads(content))
        if token not in self.tokens:
            return 403, {"errors": ["permission denied"]}
        mount, _, path = target.removeprefix("/v1/").partition("/data/")
        fields = self.stored.get(f"{mount}/{path}")
        if method != "GET" or fields is None:
            return 404, {"errors": []}
        metadata = {"created_time": "2026-01-01T00:00:00Z", "deletion_time": "", "destroyed": False, "version": 1}
        found = {"data": fields, "metadata": {**metadata, "custom_metadata": None}}
        return 200, {"request_id": secrets.token_hex(8), "lease_duration": 0, "renewable": False, "data": found}

    def _login(self, sent: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if sent != {"role_id": ROLE_ID, "secret_id": SECRET_ID}:
            return 400, {"errors": ["invalid role or secret ID"]}
        token = f"hvs.{secrets.token_hex(12)}"
        self.tokens.add(token)
        auth = {"client_token": token, "lease_duration": 1200, "renewable": True, "policies": ["default"]}
        return 200, {"request_id": secrets.token_hex(8), "data": None, "auth": auth}


@asynccontextmanager
async def running_vault() -> AsyncGenerator[VaultServer]:
    """A server on a free loopback port for as long as the block runs."""
    vault = VaultServer()
    server = await asyncio.start_server(vault.serve, "127.0.0.1", 0)
    vault.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield vault
