"""External secret stores of the operator: a folder, environment variables, and a Vault-compatible server.

Each tenant has its own folder or path in a store, named after the tenant's slug. Reads have a time limit, and the
number of concurrent reads is limited in total and per tenant.
"""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import anyio

from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.fairness.thread_kinds import SECRET_FILES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import SecretUnavailable
from gateway.domain.tenancy.secret_references import SecretReference, SecretStoreKind
from gateway.errors import LimitExceeded
from gateway.upstream.client import UpstreamClient
from gateway.upstream.deadlines import Timeouts
from gateway.upstream.secret_stores.files import FileRefused, read_secret_file
from gateway.upstream.secret_stores.limits import READ_S
from gateway.upstream.secret_stores.vault import VaultClient, VaultSettings

_SLOTS, _QUEUE = 16, 64
_PORTS = {"http": 80, "https": 443}


class SecretStores:
    """The configured stores; `opened` keeps the Vault client open while its block runs."""

    def __init__(
        self,
        *,
        folder: Path | None = None,
        variables: frozenset[str] = frozenset(),
        vault: VaultSettings | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._folder = folder
        self._variables = variables
        self._environ = environ
        self._client: UpstreamClient | None = None
        self._vault: VaultClient | None = None
        if vault is not None:
            timeouts = Timeouts(connect_s=2.0, first_byte_s=3.0, total_s=4.0)
            self._client = UpstreamClient(egress_allow=[_authority(vault.url)], timeouts=timeouts)
            self._vault = VaultClient(self._client, vault)
        self.slot_pool = FairSlotPool("reads of secret stores", slots=_SLOTS, queue=_QUEUE, timeout_s=READ_S)

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Keep the Vault client open while the block runs."""
        if self._client is None:
            yield
            return
        async with self._client:
            yield

    def fault_of(self, reference: SecretReference, *, is_operator: bool) -> str | None:
        """Return the reason why an author cannot use this reference; None if the reference is allowed."""
        if reference.store is SecretStoreKind.VARIABLE:
            if not is_operator:  # guard: reference-variable-operator
                return "only the operator may refer to variables of the gateway"
            is_listed = reference.path in self._variables
            return None if is_listed else "GATEWAY_SECRET_VARIABLES does not name this variable"
        if reference.store is SecretStoreKind.FILE:
            return None if self._folder is not None else "the operator has configured no GATEWAY_SECRET_FOLDER"
        return None if self._vault is not None else "the operator has configured no GATEWAY_VAULT_URL"

    async def read(self, tenant: TenantId, slug: str, reference: SecretReference) -> str:
        """Read the secret of a reference, without trailing line ends.

        Raises:
            SecretUnavailable: the secret is missing, or the store refuses the request or does not respond in time.
        """
        try:
            async with self.slot_pool.hold(tenant):
                with anyio.fail_after(READ_S):
                    value = await self._read(slug, reference)
        except LimitExceeded:
            raise SecretUnavailable("too many secrets are being read from external stores; retry later") from None
        except TimeoutError:
            raise SecretUnavailable(f"the store {reference.store} did not respond in time") from None
        value = value.rstrip("\r\n")
        if not value:
            raise SecretUnavailable(f"the secret in the store {reference.store} is empty")
        return value

    async def _read(self, slug: str, reference: SecretReference) -> str:
        # the configured stores may have changed since the reference was stored
        if (fault := self.fault_of(reference, is_operator=True)) is not None:
            raise SecretUnavailable(fault)
        if reference.store is SecretStoreKind.VARIABLE:
            return self._environ.get(reference.path, "")
        if reference.store is SecretStoreKind.FILE:
            return await self._read_file(slug, reference.path)
        assert self._vault is not None
        return await self._vault.read(slug, reference.path, reference.field or "")  # guard: reference-of-the-tenant

    async def _read_file(self, slug: str, path: str) -> str:
        assert self._folder is not None
        read = partial(read_secret_file, self._folder / slug, path)
        try:
            content = await run_in_thread(SECRET_FILES, slug, read)
            return content.decode()
        except FileRefused as refused:
            raise SecretUnavailable(str(refused)) from None
        except LimitExceeded as refused:  # earlier reads of the tenant's files hang
            raise SecretUnavailable(refused.message) from None
        except UnicodeDecodeError:
            raise SecretUnavailable("the file is not UTF-8 text") from None


def _authority(url: str) -> str:
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or _PORTS.get(parts.scheme, 443)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
