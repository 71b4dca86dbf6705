"""Client of Vault-compatible servers (HashiCorp Vault, OpenBao), for version 2 of the key-value engine.

The client authenticates with a token, an AppRole or the service account of a Kubernetes pod. Its separate upstream
client may connect only to this host, so tenants' tools cannot reach the server or reuse its connections.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import anyio
import msgspec

from gateway.domain.fairness.thread_kinds import SECRET_FILES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.http.requests import UpstreamRequest, UpstreamResponse
from gateway.domain.json_text import decode_object
from gateway.domain.refusals import SecretUnavailable
from gateway.errors import GatewayError, LimitExceeded
from gateway.upstream.auth.credentials import digest_of
from gateway.upstream.client import UpstreamClient
from gateway.upstream.secret_stores.limits import DEFAULT_LEASE_S, MAX_LEASE_S, MAX_VAULT_BYTES
from gateway.upstream.serialize.header_checks import is_header_value

KUBERNETES = "kubernetes:"
"""Prefix of a role setting for authentication with the pod's service account."""
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
_OK, _DENIED, _MISSING = 200, frozenset({401, 403}), 404
_LEASE_SHARE = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultSettings:
    """URL of the server, path of the tenants' secrets, and credentials of the gateway.

    `path` consists of the mount of the engine and, after the first slash, the path below which each tenant has its own
    path.
    """

    url: str
    path: str
    token: str | None = field(default=None, repr=False)
    role: str | None = None
    secret_id: str | None = field(default=None, repr=False)
    service_account: Path = _SERVICE_ACCOUNT


class VaultClient:
    """Reads secrets; a login token is reused for 80 % of its lease."""

    def __init__(self, upstream: UpstreamClient, settings: VaultSettings) -> None:
        self._upstream = upstream
        self._settings = settings
        self._token: tuple[str, float] | None = None
        self._signing_in = anyio.Lock()

    async def read(self, slug: str, path: str, field_name: str) -> str:
        """Return one field of a tenant's secret.

        Raises:
            SecretUnavailable: the secret is missing, the gateway may not read it, or the server did not return it.
        """
        mount, _, prefix = self._settings.path.partition("/")
        secret_path = "/".join(part for part in (prefix, slug, path) if part)
        url = f"{self._settings.url}/v1/{quote(mount, safe='')}/data/{quote(secret_path, safe='/')}"
        response = await self._get(url, await self._sign_in())
        if response.status in _DENIED and self._settings.token is None:  # the token may have been revoked
            self._token = None
            response = await self._get(url, await self._sign_in())
        if response.status in _DENIED:
            raise SecretUnavailable("vault refuses the gateway's token for this path")
        if response.status == _MISSING:
            raise SecretUnavailable("vault has no secret at this path")
        if response.status != _OK:
            raise SecretUnavailable(f"vault responded with status {response.status}")
        stored = _member(_member(_members(response), "data"), "data")
        value = stored.get(field_name)
        if not isinstance(value, str):
            raise SecretUnavailable("the secret in vault has no string in this field")
        return value

    async def _get(self, url: str, token: str) -> UpstreamResponse:
        headers = (("Accept", "application/json"), ("X-Vault-Request", "true"), ("X-Vault-Token", token))
        return await self._send(
            UpstreamRequest(method="GET", url=url, headers=headers, idempotent=True, credential=digest_of((token,)))
        )

    async def _sign_in(self) -> str:
        if self._settings.token is not None:
            return self._settings.token
        async with self._signing_in:
            if self._token is not None and self._token[1] > time.monotonic():
                return self._token[0]
            method, body = await self._login()
            request = UpstreamRequest(
                method="POST",
                url=f"{self._settings.url}/v1/auth/{method}/login",
                headers=(("Content-Type", "application/json"), ("X-Vault-Request", "true")),
                body=msgspec.json.encode(body),
                credential=digest_of(body.values()),
            )
            response = await self._send(request)
            auth = _member(_members(response), "auth")
            token, lease = auth.get("client_token"), auth.get("lease_duration")
            if response.status != _OK or not isinstance(token, str) or not is_header_value(token):
                raise SecretUnavailable(f"vault refuses the gateway's sign-in by {method} (status {response.status})")
            life_s = float(lease) if isinstance(lease, int) and lease > 0 else DEFAULT_LEASE_S
            self._token = token, time.monotonic() + min(life_s, MAX_LEASE_S) * _LEASE_SHARE
            return token

    async def _login(self) -> tuple[str, Mapping[str, str]]:
        role = self._settings.role or ""
        if not role.startswith(KUBERNETES):
            return "approle", {"role_id": role, "secret_id": self._settings.secret_id or ""}
        try:
            account = await run_in_thread(SECRET_FILES, KUBERNETES, self._settings.service_account.read_text)
        except (OSError, UnicodeDecodeError, LimitExceeded):
            raise SecretUnavailable("the service account of the pod cannot be read") from None
        return "kubernetes", {"role": role.removeprefix(KUBERNETES), "jwt": account.strip()}

    async def _send(self, request: UpstreamRequest) -> UpstreamResponse:
        try:
            return await self._upstream.send(request, tenant=None, limit_bytes=MAX_VAULT_BYTES)
        except SecretUnavailable:
            raise
        except GatewayError as error:
            raise SecretUnavailable(f"vault cannot be read ({error.code})") from None


def _members(response: UpstreamResponse) -> dict[str, Any]:
    try:
        return decode_object(response.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


def _member(members: Mapping[str, Any], name: str) -> dict[str, Any]:
    found: object = members.get(name)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
